"""Local copies of all collections that the controller reads, each kept by an informer."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dragoon.allocator.gang.model import NodeFacts
from dragoon.allocator.gang.reading import node_facts
from dragoon.allocator.interning import Interner
from dragoon.allocator.model import Slice
from dragoon.allocator.slices import slice_record
from dragoon.api.gang import GangObject, gang_of
from dragoon.gang import nudging
from dragoon.gang.discovering.table import OBJECTS
from dragoon.gang.group_copies import GroupCopies
from dragoon.gang.protocol.model import RuleFacts
from dragoon.gang.protocol.objects import rule_facts
from dragoon.gang.records import JobRecord, PodRecord, Raw, job_record, pod_record, trimmed
from dragoon.gang.remembering import Pace
from dragoon.gang.sharing import Shared
from dragoon.kube.informer import Informer
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    EVENTS,
    GANGS,
    JOBS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SLICES,
    TAINT_RULES,
    Api,
    Object,
    Resource,
)

_PAGE_SLICES: Final = 20
"""Slices in one page: raw they are 0.4 MB each."""
_PAGE: Final = 500


class RuleRecord(NamedTuple):
    """A DeviceTaintRule. facts: what it says, None where it is not one of ours."""

    raw: Raw
    facts: RuleFacts | None


class Copies:
    """The informers. Raw objects are decoded into records and dropped where that saves memory.

    failures: events by which kubelets say that they could not prepare the claims of a pod. groups:
    objects of other projects, where there are any.
    """

    def __init__(self, api: Api, *, pace: Pace | None = None) -> None:
        interner = Interner()
        self.pods: Informer[PodRecord] = Informer(api, PODS, decode=pod_record, page=_PAGE)
        self.claims: Informer[Raw] = Informer(api, CLAIMS, decode=trimmed, page=_PAGE)
        self.slices: Informer[Slice] = Informer(
            api, SLICES, decode=lambda raw: slice_record(raw, interner), page=_PAGE_SLICES
        )
        self.nodes: Informer[NodeFacts] = Informer(api, NODES, decode=node_facts, page=_PAGE)
        self.rules: Informer[RuleRecord] = Informer(
            api, TAINT_RULES, decode=lambda raw: RuleRecord(trimmed(raw), rule_facts(raw))
        )
        self.classes: Informer[Raw] = Informer(api, CLASSES, decode=trimmed)
        self.gangs: Informer[GangObject] = Informer(api, GANGS, decode=gang_of)
        self.jobs: Informer[JobRecord] = Informer(api, JOBS, decode=job_record, page=_PAGE)
        self.priority_classes: Informer[str] = Informer(
            api, PRIORITY_CLASSES, decode=lambda raw: str(raw["metadata"]["name"])
        )
        self.failures: Informer[Raw] = Informer(
            api, EVENTS, fields=nudging.FIELDS, decode=trimmed, page=_PAGE
        )
        self.informers: Mapping[Resource, Informer[Any]] = {
            PODS: self.pods,
            CLAIMS: self.claims,
            SLICES: self.slices,
            NODES: self.nodes,
            TAINT_RULES: self.rules,
            CLASSES: self.classes,
            GANGS: self.gangs,
            JOBS: self.jobs,
            PRIORITY_CLASSES: self.priority_classes,
            EVENTS: self.failures,
        }
        self.groups = GroupCopies(api, OBJECTS.values(), again=(pace or Pace()).served)
        self._relisting = Shared(self.claims.refresh)

    async def refresh_claims(self) -> None:
        """Lists all claims past every cache, from now on; callers of one moment share a list."""
        await self._relisting()

    async def refresh(self) -> None:
        """Lists past every cache what a leader writes: another's last writes may be on the way."""
        for informer in (self.claims, self.gangs, self.rules, self.pods):
            await informer.refresh()

    async def synced(self) -> None:
        """Waits until every copy has had its first list."""
        for informer in self.informers.values():
            await informer.synced()
        await self.groups.settled()

    @property
    def not_synced(self) -> tuple[str, ...]:
        """The collections that have not been listed yet, and why."""
        states = {resource.plural: informer.state for resource, informer in self.informers.items()}
        return tuple(
            f"{plural} ({state.last_error})" if state.last_error else plural
            for plural, state in states.items()
            if not state.synced
        )

    def observe(self, resource: Resource, written: Object) -> None:
        """Takes the answer to an own write into the copies before a watch brings it."""
        informer = self.informers.get(resource)
        if informer is not None:
            informer.observe(written)
