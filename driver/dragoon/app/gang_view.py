"""Gangs as commands show them, and giving them up without a controller."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dragoon.api import gang
from dragoon.api.gang import GangObject, gang_of
from dragoon.api.gang_plan import unpack
from dragoon.diagnose.gangs import find_gang
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.errors import (
    ApiConflictError,
    ApiNotFoundError,
    DragoonError,
    InvalidInputError,
)
from dragoon.gang.asking import gang_ref
from dragoon.gang.discovering import families
from dragoon.gang.protocol.actions import Action, Journal, Reserve
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.protocol.model import Member, RuleFacts
from dragoon.gang.protocol.objects import rule_facts
from dragoon.gang.protocol.sweeping import release
from dragoon.gang.protocol.viewing import claim_facts, member_of
from dragoon.gang.records import job_record, pod_record
from dragoon.kube.port import CLAIMS, GANGS, JOBS, PODS, TAINT_RULES, Api, Object

_TRIES = 5
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Released:
    """What was given up: pods that were let go, rules that were removed, dropped plans."""

    pods: int
    rules: int
    plans: int


async def gangs_in(api: Api, namespace: str | None = None) -> list[GangObject]:
    """All gangs, sorted; none where the CRD is not there. Raises DragoonError."""
    try:
        listing = await api.list(GANGS, namespace=namespace)
    except ApiNotFoundError:
        return []
    return sorted(map(_gang, listing.items), key=lambda one: one.key)


def _gang(raw: Object) -> GangObject:
    """Raises InvalidInputError, naming the Gang."""
    try:
        return gang_of(raw)
    except InvalidInputError as error:
        meta = raw["metadata"]
        raise InvalidInputError(
            f"{meta.get('namespace')}/{meta['name']}: {error.message}"
        ) from error


def saved_gangs(
    snapshot: ClusterSnapshot, namespace: str | None = None
) -> tuple[list[GangObject], list[str]]:
    """The gangs of a saved cluster, sorted, and what could not be read of them, and why."""
    found = []
    unread = [one for one in snapshot.missing if one.startswith((f"{GANGS.plural}:", "left out"))]
    for space, name, _ in snapshot.named(gang.KIND):
        if namespace in {None, space}:
            try:
                one = find_gang(snapshot, space, name)
            except DragoonError as error:
                unread.append(error.message)
            else:
                found += [one] if one else []
    return sorted(found, key=lambda one: one.key), unread


def age(created: str, now: datetime) -> str:
    """How old, as kubectl says it; `unknown` for what is no time, or has no zone."""
    try:
        seconds = int((now - datetime.fromisoformat(created)).total_seconds()) if created else 0
    except (ValueError, TypeError):
        return "unknown"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(0, seconds)}s"


def details(one: GangObject) -> list[tuple[str, list[str]]]:
    """What is known of a gang: titles and lines."""
    status, source = one.status, one.spec.source
    parts = [
        ("group", [] if source is None else [f"{source.name} {source.group}"]),
        ("waits for", [status.waiting_for] if status.waiting_for else []),
        ("why", list(status.explanation)),
        (
            "conditions",
            [
                f"{each.type} {each.status} ({each.reason})"
                + (f": {each.message}" if each.message else "")
                for each in status.conditions
            ],
        ),
        ("members", list(_members(one))),
        ("notes", list(status.notes)),
    ]
    return [(title, lines) for title, lines in parts if lines]


def _members(one: GangObject) -> Iterable[str]:
    plan = one.status.plan
    if plan is None:
        return
    allocations = {claim.name: claim.allocation for claim in unpack(plan.packed)}
    for member in plan.members:
        devices = [
            result["device"]
            for name in member.claims
            for result in (allocations.get(name, {}).get("devices") or {}).get("results") or ()
        ]
        yield f"{member.pod} on {member.node}: {', '.join(devices) or 'no device'} (planned)"
    for held in plan.held:
        gone = f" (gone since {held.vacated})" if held.vacated else ""
        claims = ", ".join(claim.name for claim in held.claims)
        yield f"{held.pod} on {held.node}: {f'claims {claims}' if claims else 'no claim'}{gone}"


async def give_up(api: Api, *, namespace: str = "", name: str = "") -> Released:
    """Gives up one gang, or all of them: every gate, then every rule, then every plan.

    Pods whose claims are all allocated stay on their node; the others are kube-scheduler's from now
    on, one by one. Raises InvalidInputError where the gang does not exist, and what the API says.
    """
    found = await gangs_in(api, namespace or None)
    if name:
        found = [one for one in found if one.name == name]
        if not found:
            raise InvalidInputError(
                f"gang {namespace}/{name}: not found", hint="list them with dragoon gangs"
            )
    executor = Executor(api)
    pods = rules = plans = 0
    for _ in range(_TRIES):
        gates, deletions = await _left(api, found if name else None)
        dropped = [action for one in found for action in _journaled(one)]
        if not gates and not deletions and not dropped:
            return Released(pods, rules, plans)
        # Two parts of one journal are two writes, and the second names the version of the first.
        settled = not any(one.status.plan and one.status.reservation for one in found)
        for actions in (gates, deletions, dropped):
            settled = await _execute(executor, actions) and settled
        pods, rules, plans = (
            max(pods, len(gates)),
            max(rules, len(deletions)),
            max(plans, len(dropped)),
        )
        if settled:
            return Released(pods, rules, plans)
        names = {one.uid for one in found}
        found = [one for one in await gangs_in(api, namespace or None) if one.uid in names]
    raise ApiConflictError(
        "gangs keep changing while they are given up",
        hint="stop the controller first, then run this again",
    )


def _journaled(one: GangObject) -> Iterable[Action]:
    """Drops what the status of a gang has journaled: one write at a time, each names a version."""
    if one.status.plan is not None:
        yield Journal(gang_ref(one), None)
    elif one.status.reservation is not None:
        yield Reserve(gang_ref(one), None)


async def _execute(executor: Executor, actions: Sequence[Action]) -> bool:
    """Whether all was written. Raises the first error that is no conflict."""
    outcome = await executor.execute(actions)
    for error in outcome.errors:
        raise error
    return not outcome.conflicts


async def _left(
    api: Api, only: Sequence[GangObject] | None
) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """What is still to be undone; None: of everybody."""
    pods, claims, rules = await asyncio.gather(
        _pods(api, only), api.list(CLAIMS), api.list(TAINT_RULES)
    )
    by_name = {
        (raw["metadata"].get("namespace", ""), raw["metadata"]["name"]): raw for raw in claims.items
    }
    members: list[Member] = [
        member_of(pod, lambda space, name: by_name.get((space, name))) for pod in pods
    ]
    facts: list[RuleFacts] = [fact for raw in rules.items if (fact := rule_facts(raw)) is not None]
    if only is not None:
        uids = {one.uid for one in only}
        facts = [one for one in facts if one.gang in uids]
    return release(members, {key: claim_facts(raw) for key, raw in by_name.items()}, facts)


async def _pods(api: Api, only: Sequence[GangObject] | None) -> list[Object]:
    """Gated pods: of everybody, or the members of gangs."""
    if only is None:
        found: list[Object] = []
        async for page in api.pages(PODS, size=_PAGE):
            found += [pod for pod in page.items if _is_gated(pod)]
        return found
    pods: list[Object] = []
    for one in only:
        pods += await _gated_members(api, one)
    return pods


async def _gated_members(api: Api, one: GangObject) -> list[Object]:
    """As the controller sorts them: other gangs may have the same label."""
    space = one.namespace
    pods, jobs, gangs = await asyncio.gather(
        api.list(PODS, namespace=space, labels=f"{gang.LABEL}={one.group}"),
        api.list(JOBS, namespace=space),
        gangs_in(api, space),
    )
    by_uid = {raw["metadata"]["uid"]: raw for raw in pods.items}
    family = families.sort(
        space,
        one.group,
        pods=map(pod_record, pods.items),
        gangs=[each for each in gangs if each.group == one.group],
        jobs={job.uid: job for job in map(job_record, jobs.items)},
    )
    members = (by_uid[pod.uid] for pod in family.members.get(one.name, ()))
    return [raw for raw in members if _is_gated(raw)]


def _is_gated(pod: Object) -> bool:
    gates: Any = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(gate.get("name") == gang.GATE for gate in gates)
