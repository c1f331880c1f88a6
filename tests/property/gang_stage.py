"""A gang on the small cluster, taken forward until something is so: for tests of one course."""

from collections.abc import Callable
from random import Random
from typing import Any

from dragoon.api.gang_plan import Step
from dragoon.gang.protocol.model import GangView, Kind, Settings
from dragoon.kube.faults import Call
from dragoon.kube.port import CLAIMS, GANGS, JOBS, PODS, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE, Cluster
from tests.property.gang_pilot import Pilot
from tests.property.gang_scheduler import Raw, devices_of

_ROUNDS = 200


class Stage:
    """The cluster and the controller, without races but those that a test makes."""

    def __init__(self, *, nodes: int = 2, gpus: int = 2, cpu: int = 4, **settings: Any) -> None:
        rng = Random(7)  # noqa: S311 - always the same run
        self.cluster = Cluster(rng, nodes=nodes, gpus=gpus, cpu=cpu)
        self.pilot = Pilot(self.cluster, Settings(**settings))

    async def start(self, size: int, *, job: bool = True, gpus: int = 1) -> None:
        """A Gang with its pods and claims."""
        await self.cluster.start()
        await self.cluster.create_gang(size, job=job, gpus=gpus)
        await self.parts()

    async def parts(self) -> None:
        """What Kubernetes does, but for kube-scheduler."""
        await self.cluster.job_controller()
        await self.cluster.claim_controller()
        await self.cluster.kubelets()

    async def schedule(self) -> None:
        """kube-scheduler tries every pod that waits, and writes."""
        await self.cluster.scheduler.sync()
        for _ in range(6):
            await self.cluster.scheduler.attempt()
            await self.cluster.scheduler.land()
            await self.cluster.scheduler.sync()

    async def view(self) -> GangView:
        """The gang as the controller sees it."""
        view = await self.pilot.view()
        assert view is not None
        return view

    async def pilot_until(self, done: Callable[[GangView], bool]) -> GangView:
        """The controller alone: nobody else does anything meanwhile."""
        for _ in range(_ROUNDS):
            view = await self.view()
            if done(view):
                return view
            await self.pilot.step()
            self.pilot.tick = max(self.pilot.tick, self.pilot.wake or 0.0)
        raise AssertionError(f"never: {view.plan}")

    async def until(self, done: Callable[[GangView], bool]) -> GangView:
        """Everybody, in turns."""
        for _ in range(_ROUNDS):
            view = await self.view()
            if done(view):
                return view
            await self.parts()
            await self.schedule()
            await self.pilot.step()
            self.pilot.tick = max(self.pilot.tick + 1.0, self.pilot.wake or 0.0)
            if self.pilot.proposal is not None and self.pilot.proposal.refusal:
                self.pilot.proposal = None
        raise AssertionError(f"never: {view.plan} {view.members}")

    async def all(self, resource: Any) -> tuple[Raw, ...]:
        """All raw objects of a kind."""
        return (await self.cluster.api.list(resource)).items

    async def guarded(self) -> set[str]:
        """The pools with a rule because of a device that was given twice."""
        return {
            rule["spec"]["deviceSelector"]["pool"]
            for rule in await self.all(TAINT_RULES)
            if rule["metadata"]["labels"]["dragoon.dev/rule"] == Kind.DAMAGE
        }

    @property
    def calls(self) -> list[Call]:
        """All calls of everybody so far."""
        return self.cluster.api.faults.calls

    @property
    def evictions(self) -> list[Call]:
        """The evictions so far."""
        return [call for call in self.calls if call.subresource == "eviction"]

    async def claim_of(self, pod: Raw) -> Raw:
        """The claim that was made for a pod."""
        uid = pod["metadata"]["uid"]
        (found,) = (
            claim
            for claim in await self.all(CLAIMS)
            for owner in claim["metadata"].get("ownerReferences") or ()
            if owner["uid"] == uid
        )
        return found

    async def rival(self) -> Raw:
        """A stranger's pod for which kube-scheduler has decided and not written yet."""
        pod = await self.cluster.create_pod()
        await self.parts()
        await self.cluster.scheduler.sync()
        await self.cluster.scheduler.attempt()
        return pod

    async def undone(self) -> None:
        """The round is over and has left nothing: no allocation, nomination, rule."""
        await self.pilot_until(lambda view: view.plan is None)
        assert await self.all(TAINT_RULES) == ()
        assert [claim for claim in await self.all(CLAIMS) if devices_of(claim)] == []
        for pod in await self.cluster.crew():
            assert pod["spec"]["schedulingGates"]
            assert "nominatedNodeName" not in pod["status"]

    async def given_twice(self) -> Raw:
        """A stranger's claim lands on the gang's device after our write; its pod."""
        stranger = await self.rival()
        await self.pilot_until(at(Step.VERIFY))
        await self.cluster.scheduler.land()
        return stranger

    async def take_cpu(self, node: str) -> None:
        """A pod of higher priority takes a node's CPU: nominations do not hold against it."""
        pod = await self.cluster.create_pod(gpus=0, cpu=2)
        await self.cluster.api.patch(
            PODS, pod["metadata"]["name"], {"spec": {"nodeName": node}}, namespace=NAMESPACE
        )

    async def delete_all(self) -> None:
        """The gang, its Job and its pods go while the controller is away."""
        await self.cluster.api.delete(GANGS, "crew", namespace=NAMESPACE)
        await self.cluster.api.delete(JOBS, "crew", namespace=NAMESPACE)
        for pod in await self.cluster.crew():
            await self.cluster.delete(pod)
        for _ in range(5):
            await self.parts()


def at(step: Step) -> Callable[[GangView], bool]:
    """Whether the plan has come to this step."""
    return lambda view: view.plan is not None and view.plan.step is step


def running(size: int) -> Callable[[GangView], bool]:
    """Whether so many members run."""
    return lambda view: sum(member.phase == "Running" for member in view.members) == size
