"""Asks the planner whether the pods of a Workload can be placed, and promises what it gives."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dragoon.allocator.gang.model import (
    ANYWHERE,
    GangAsk,
    GangPlan,
    Outcome,
    PlacementSnapshot,
    PodAsk,
)
from dragoon.errors import ApiNotFoundError, InvalidInputError
from dragoon.gang import asking
from dragoon.gang.kueue.answering import Answer, Verdict, answer_of
from dragoon.gang.kueue.apis import Apis
from dragoon.gang.kueue.members import Found, NotThereError, gang_label, needs, pod_asks
from dragoon.gang.kueue.model import Raw, Workload
from dragoon.gang.kueue.promising import Rooms
from dragoon.gang.planning import Planning
from dragoon.gang.waiting.ranking import Rank
from dragoon.gang.world import World
from dragoon.kube.port import TEMPLATES, Api, Resource

_LAST: Final = -(2**31) - 1
"""Behind every gang: whether it would fit is asked when nobody else asks."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer, and how many seconds the planner took."""

    answer: Answer
    seconds: float = 0.0


class Prober:
    """The planner's door for Workloads. rooms: what was promised beside devices."""

    def __init__(
        self,
        api: Api,
        apis: Apis,
        world: World,
        planning: Planning,
        rooms: Rooms,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._apis = apis
        self._world = world
        self._planning = planning
        self._rooms = rooms
        self._now = now

    def drop(self, uid: str) -> None:
        """What was promised to a Workload is free again."""
        self._planning.questions.drop(uid)
        self._rooms.drop(uid)

    async def ask(self, workload: Workload, *, hold: bool) -> Asked:
        """Plans the pods as they would be. hold: what it gives is kept for the Workload.

        A promise from before ends where there is no room any more. Raises ApiError.
        """
        found = await self._read(workload)
        given: list[Answer] = []

        def keep(outcome: Outcome) -> None:
            given.append(answer_of(outcome))
            if hold:
                self._keep(workload, outcome, given[0])

        try:
            seconds = await self._planning.probe(
                _rank(workload, workload.priority if hold else _LAST),
                # Of all that wait for their turn none keeps its pods.
                question=lambda: self._question(workload, pod_asks(workload, found)),
                keep=keep,
            )
        except NotThereError as error:
            return self._unanswered(workload, Verdict.NO_ROOM, error)
        except InvalidInputError as error:
            return self._unanswered(workload, Verdict.WRONG, error)
        return Asked(given[0], seconds)

    def _unanswered(self, workload: Workload, verdict: Verdict, error: InvalidInputError) -> Asked:
        self.drop(workload.ref.uid)
        return Asked(Answer(verdict, error.message))

    def _keep(self, workload: Workload, outcome: Outcome, answer: Answer) -> None:
        uid = workload.ref.uid
        if isinstance(outcome, GangPlan):
            self._planning.questions.promise(uid, workload.ref.namespace, answer.claims)
            self._rooms.keep(uid, outcome)
        else:
            self.drop(uid)

    def _question(
        self, workload: Workload, pods: tuple[PodAsk, ...]
    ) -> tuple[GangAsk, PlacementSnapshot]:
        world, uid = self._world, workload.ref.uid
        label = gang_label(workload)
        gang = world.copies.gangs.get(label, workload.ref.namespace) if label else None
        others = world.copies.gangs.values()
        # Only gangs of ours may be where kube-scheduler is kept off.
        own = "" if gang is None else gang.uid
        taints = asking.open_to(own, label, others) if label else ()
        ask = GangAsk(
            name=str(workload),
            members=pods,
            minimum=len(pods),
            topology=ANYWHERE if gang is None else gang.spec.topology,
            excluded=frozenset(asking.kept_by_namesakes(own, label, others) if label else ()),
            tolerations=tuple(taints),
        )
        placement = PlacementSnapshot(
            cluster=self._planning.questions.open_to_workload(
                uid, workload.pod_priority, self._now()
            ),
            nodes=self._rooms.filled(world.node_facts(), uid),
            extended=world.extended(),
            mix=self._planning.questions.mix(),
            priorities=world.priorities(),
        )
        return ask, placement

    async def _read(self, workload: Workload) -> Found:
        wanted, namespace = needs(workload), workload.ref.namespace
        claims = {name: self._world.claim(namespace, name) for name in wanted.claims}
        return Found(
            templates=await self._get(TEMPLATES, wanted.templates, namespace),
            claims={name: raw for name, raw in claims.items() if raw is not None},
            flavors=await self._get(self._apis.flavors, wanted.flavors, None),
        )

    async def _get(
        self, resource: Resource, names: Iterable[str], namespace: str | None
    ) -> dict[str, Raw]:
        found: dict[str, Raw] = {}
        for name in names:
            try:
                found[name] = await self._api.get(resource, name, namespace=namespace)
            except ApiNotFoundError:
                continue
        return found


def _rank(workload: Workload, priority: int) -> Rank:
    """The place of a Workload among all that ask the planner."""
    return Rank(-priority, workload.created, *workload.key)
