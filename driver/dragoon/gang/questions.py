"""The planner's questions: the ask of a gang, and the cluster as this gang may use it."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from dragoon.allocator import Snapshot
from dragoon.allocator.gang.mix import Mix
from dragoon.allocator.gang.model import GangAsk, PlacementSnapshot
from dragoon.allocator.gang.vacating import Occupant
from dragoon.api.gang import GangObject
from dragoon.api.gang_plan import PlannedClaim
from dragoon.gang import asking
from dragoon.gang.expecting import Expecting
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.protocol import viewing
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import Member
from dragoon.gang.records import PodRecord
from dragoon.gang.waiting.keeping import Keeping
from dragoon.gang.waiting.occupants import occupants
from dragoon.gang.world import World


class Questions:
    """Asks made from what the informers show, and what is promised and not written yet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._unpacked = viewing.Unpacked()
        self._promises = asking.Promises(self.claims_of)
        self.keeping = Keeping(world)
        self._expecting = Expecting(world.copies.pods, world.claim)

    def claims_of(self, gang: GangObject) -> tuple[PlannedClaim, ...]:
        """The claims of a journaled plan. Raises InvalidInputError for a damaged journal."""
        return self._unpacked.of(asking.gang_ref(gang), gang.status.plan)

    def propose(self, gang: GangObject, claims: Sequence[PlannedClaim]) -> None:
        """What the planner gave a gang: others see it as taken until it is dropped."""
        self._promises.keep(gang.uid, gang.namespace, claims)

    def promise(self, uid: str, namespace: str, claims: Sequence[PlannedClaim]) -> None:
        """What the planner gave a Workload of Kueue, by UID; the gang of its pods may use it."""
        self._promises.keep(uid, namespace, claims, to_workload=True)

    def drop(self, uid: str) -> None:
        """What was kept for a gang or a Workload is over."""
        self._promises.drop(uid)

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._promises.drop(uid)
        self._unpacked.forget(uid)
        self.keeping.forget(uid)

    def mix(self) -> Mix:
        """The pods that are to be expected."""
        return self._expecting.mix()

    def snapshot(self, gang: GangObject) -> Snapshot:
        """The cluster with all that is promised to other gangs; not what is only kept for them."""
        gangs = self._world.copies.gangs.values()
        return self._promises.snapshot(self._world.state, self._own(gang), gangs)

    def open_to(
        self,
        gang: GangObject,
        pods: Sequence[PodRecord],
        now: datetime,
        displaced: frozenset[str] = frozenset(),
    ) -> Snapshot:
        """The cluster as the gang may use it: what is kept for others is used, but for backfill.

        displaced: the UIDs of gangs whose reservation it takes over.
        """
        closed = self.keeping.closed_to(gang, pods, now)
        kept = [(one, claims) for one, claims in closed if one.uid not in displaced]
        gangs = self._world.copies.gangs.values()
        return self._promises.snapshot(self._world.state, self._own(gang), gangs, kept)

    def open_to_workload(self, uid: str, priority: int, now: datetime) -> Snapshot:
        """The cluster as the pods of a Workload of Kueue may use it.

        uid: its own; priority: theirs.
        """
        kept = self.keeping.closed_to_priority(priority, now)
        gangs = self._world.copies.gangs.values()
        return self._promises.snapshot(self._world.state, {uid}, gangs, kept)

    def _own(self, gang: GangObject) -> set[str]:
        """The UIDs whose promises the gang may use: its own, and of the Workloads of its pods."""
        pods = self._world.family(FamilyKey(gang.namespace, gang.group))
        named = (pod.workload for pod in pods)
        return {gang.uid, *self._promises.to_workloads(named, gang.namespace)}

    def ask(
        self,
        gang: GangObject,
        pods: Sequence[PodRecord],
        members: Sequence[Member],
        request: RequestPlan,
        *,
        now: datetime,
        displaced: frozenset[str] = frozenset(),
    ) -> tuple[GangAsk, PlacementSnapshot]:
        """What to plan, and where. pods, members: of the gang, as records and for the protocol.

        displaced: as in `open_to`.

        Raises InvalidInputError for an amount that cannot be read.
        """
        world = self._world
        by_uid = {pod.uid: pod for pod in pods}
        scene = asking.Scene(gang, gang.status.plan, by_uid, members, world.claim)
        asked = set(request.pods)
        ask = asking.gang_ask(scene, request, others=world.copies.gangs.values(), now=now)
        moving = [pod.key for pod in pods if pod.uid in asked and not pod.node]
        placement = PlacementSnapshot(
            cluster=self.open_to(gang, pods, now, displaced),
            nodes=world.node_facts(without=moving),
            extended=world.extended(),
            mix=self.mix(),
            priorities=world.priorities(),
        )
        return ask, placement

    def occupants(self, own: Iterable[PodRecord], now: datetime) -> tuple[Occupant, ...]:
        """All who hold what a gang could use, but for its own pods."""
        world = self._world
        mine = {pod.uid for pod in own}
        names = {one.uid: str(one) for one in world.copies.gangs.values()}
        return occupants(
            (pod for pod in world.copies.pods.values() if pod.uid not in mine),
            gang_of=lambda pod: names.get(world.planned_by(pod.uid), ""),
            jobs=world.jobs_by_uid,
            now=now,
        )
