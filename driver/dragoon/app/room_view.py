"""Room for a gang: who would have to leave, and asking them to (`dragoon gangs make-room`)."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dragoon.allocator.gang.model import GangPlan, NoRoom
from dragoon.allocator.gang.planning import plan
from dragoon.allocator.gang.vacating import TRIES, Occupant
from dragoon.api.gang import GangObject
from dragoon.diagnose.codes import API_VERSION
from dragoon.errors import ApiNotFoundError, ApiUnavailableError, DragoonError, InvalidInputError
from dragoon.gang.asking import gang_ref
from dragoon.gang.copies import Copies
from dragoon.gang.discovering import families
from dragoon.gang.discovering.grouping import slot_of
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import GangView
from dragoon.gang.protocol.rounds import candidates
from dragoon.gang.questions import Questions
from dragoon.gang.records import PodRecord
from dragoon.gang.waiting import making_room, ranking
from dragoon.gang.world import Listener, World
from dragoon.kube.port import EVENTS, Api

_PATIENCE_S: Final = 20.0
"""A search takes as many copies of the cluster as can be planned in this time, or these:"""
_LEAST_TRIES: Final = 16
_REFUSED: Final = 429
"""What an eviction is answered when a disruption budget is used up."""


@dataclass(frozen=True, slots=True)
class Room:
    """What was found.

    state: `fits`, `placed`, `incomplete`, `possible` or `impossible`. lines: in words, the first
    one says it all. occupants: who has to leave, where it is possible. nodes: where the gang goes
    then. pods: theirs, living ones.
    """

    gang: str
    state: str
    lines: tuple[str, ...]
    priority: int = 0
    occupants: tuple[Occupant, ...] = ()
    nodes: tuple[str, ...] = ()
    pods: tuple[PodRecord, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether the gang can be placed, now or when others have left."""
        return self.state in {"fits", "placed", "possible"}


@dataclass(frozen=True, slots=True)
class Eviction:
    """What came of asking a pod to leave. refusal: empty where it leaves."""

    pod: str
    refusal: str = ""


@dataclass(slots=True)
class _Case:
    """A gang and its members, in one list of everything."""

    world: World
    gang: GangObject
    pods: Sequence[PodRecord]
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


async def room_for(api: Api, namespace: str, name: str) -> Room:
    """Whether a gang fits, and if not who of lower priority would have to leave for that.

    Raises InvalidInputError where the gang is not there, and what the API says.
    """
    case = await _look(api, namespace, name)
    return await asyncio.to_thread(_answer, case)


async def evict(api: Api, pods: Sequence[PodRecord]) -> list[Eviction]:
    """Asks each of these pods to leave (pods/eviction). Raises DragoonError where asking fails."""
    return [await _evict(api, pod) for pod in pods]


def plain(found: Room, asked: Sequence[Eviction] = ()) -> dict[str, Any]:
    """The answer as plain data; asked: what came of evictions, where there were any."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GangRoom",
        "gang": found.gang,
        "state": found.state,
        "priority": found.priority,
        "message": found.lines[0],
        "explanation": list(found.lines[1:]),
        "nodes": list(found.nodes),
        "holders": [
            {
                "name": one.name,
                "priority": one.priority,
                "pods": list(one.pods),
                "claims": list(one.claims),
            }
            for one in found.occupants
        ],
        "evictions": [{"pod": one.pod, "refusal": one.refusal} for one in asked],
    }


async def _evict(api: Api, pod: PodRecord) -> Eviction:
    try:
        await api.evict(pod.name, namespace=pod.namespace, uid=pod.uid)
    except ApiNotFoundError:
        return Eviction(str(pod))
    except ApiUnavailableError as error:
        if error.status != _REFUSED:
            raise
        return Eviction(str(pod), error.message)
    except DragoonError as error:
        return Eviction(str(pod), error.message)
    return Eviction(str(pod))


async def _look(api: Api, namespace: str, name: str) -> _Case:
    copies = Copies(api)
    world = World(copies, Listener(lambda _key: None, lambda _freed: None, lambda: None))
    informers = (one for resource, one in copies.informers.items() if resource is not EVENTS)
    await asyncio.gather(*(one.refresh() for one in informers))
    gang = copies.gangs.get(name, namespace)
    if gang is None:
        raise InvalidInputError(
            f"gang {namespace}/{name}: not found", hint="list them with dragoon gangs"
        )
    key = FamilyKey(gang.namespace, gang.group)
    found = families.sort(
        *key, pods=world.family(key), gangs=world.gangs_of(key), jobs=world.jobs_by_uid
    )
    return _Case(world, gang, found.members.get(gang.name, ()))


def _answer(case: _Case) -> Room:
    gang, questions = case.gang, Questions(case.world)
    view = _view(case, questions)
    asked = candidates(view)
    if not asked:
        return _nothing_to_place(case)
    request = RequestPlan(tuple(one.ref.uid for one in asked))
    ask, snapshot = questions.ask(gang, case.pods, view.members, request, now=case.now)
    started = time.monotonic()
    outcome = plan(snapshot, ask)
    tries = int(_PATIENCE_S / max(time.monotonic() - started, _PATIENCE_S / TRIES))
    priority = ranking.priority(case.pods)
    if isinstance(outcome, GangPlan):
        return Room(str(gang), "fits", ("it fits now",), priority, nodes=_nodes(outcome))
    if not isinstance(outcome, NoRoom):
        return Room(str(gang), "impossible", (outcome.message,), priority)
    found = making_room.make_room(
        snapshot,
        ask,
        questions.occupants(case.pods, case.now),
        priority=priority,
        tries=max(_LEAST_TRIES, tries),
    )
    if found is None:
        line = f"there is no place for it even if all of lower priority than {priority} left"
        return Room(str(gang), "impossible", (line, outcome.message), priority)
    leaving = set(found.pods)
    pods = [pod for pod in case.world.copies.pods.values() if str(pod) in leaving and pod.is_alive]
    return Room(
        str(gang),
        "possible",
        making_room.told(found),
        priority,
        found.occupants,
        _nodes(found.plan),
        tuple(sorted(pods, key=lambda pod: pod.key)),
    )


def _nothing_to_place(case: _Case) -> Room:
    """All members have a place, or some are missing."""
    name, found = str(case.gang), case.gang.status
    if found.plan is not None:
        return Room(name, "placed", ("it is placed already",))
    return Room(name, "incomplete", (f"it is not complete: {found.waiting_for or 'pods missing'}",))


def _nodes(found: GangPlan) -> tuple[str, ...]:
    return tuple(sorted({one.node for one in found.placements}))


def _view(case: _Case, questions: Questions) -> GangView:
    """What the protocol looks at to say which pods are to be placed next."""
    world, gang = case.world, case.gang
    found: tuple[Any, ...] = tuple(
        viewing.member_of(pod.raw, world.claim, slot=slot_of(pod))
        for pod in case.pods
        if pod.raw is not None
    )
    return GangView(
        now=case.now,
        tick=0.0,
        gang=gang_ref(gang),
        minimum=gang.spec.size,
        maximum=gang.spec.max_size,
        members=found,
        claims={},
        rules=(),
        snapshot=questions.snapshot(gang),
        nodes=world.node_names(),
        plan=gang.status.plan,
    )
