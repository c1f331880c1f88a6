"""What if these files were applied: where their pods would be placed, one after the other."""

from collections import Counter
from dataclasses import dataclass

from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.devices import GivenDevice, given
from dragoon.diagnose.manifests import Item, Manifests, Raw, mapping
from dragoon.diagnose.placing import Placement, Verdict, place
from dragoon.diagnose.pods import PodClaims, claims_of, is_allocated, pods_of, uses
from dragoon.diagnose.remedies import Remedies, remedies
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.diagnose.workloads import PER_NODE, PodTemplate, pod_templates


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod, or a claim without a pod, that was placed."""

    name: str
    node: str
    devices: tuple[GivenDevice, ...]


@dataclass(frozen=True, slots=True)
class Simulated:
    """One workload, or a claim that no pod in the files uses.

    wanted: how many pods. placed: those that were. placement: of the first that was not, else of
    the last. remedies: for the first that was not.
    """

    object: str
    role: str
    wanted: int
    placed: tuple[Placed, ...]
    placement: Placement | None
    remedies: Remedies | None = None

    @property
    def verdict(self) -> Verdict:
        """Place if all were placed, else what was said of the first that was not."""
        if len(self.placed) == self.wanted or self.placement is None:
            return Verdict.PLACE
        return self.placement.verdict

    @property
    def nodes(self) -> tuple[tuple[str, int], ...]:
        """Pods by node."""
        return tuple(Counter(one.node for one in self.placed).items())


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything in the files, in their order. notes: what was left out, and why."""

    groups: tuple[Simulated, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether everything would be placed."""
        return all(group.verdict is Verdict.PLACE for group in self.groups)


def simulate(snapshot: ClusterSnapshot, manifests: Manifests) -> Simulation:
    """Places the pods and claims of files into a copy of a snapshot.

    Pods are placed one after the other, each on the first node by name on which it fits, and hold
    their devices from then on. Nothing is placed together: gangs are counted like other pods.
    """
    run = _Run(snapshot.with_items(manifests.items))
    pods = [pod for item in manifests.items for pod in pod_templates(item)]
    groups = [run.workload(pod) for pod in pods if pod.spec.get("resourceClaims")]
    alone = [run.claim(item) for item in manifests.of_kind("ResourceClaim")]
    without = [pod for pod in pods if not pod.spec.get("resourceClaims")]
    notes = [f"{bad.origin}: {bad.problem}" for bad in (*manifests.unreadable, *manifests.foreign)]
    notes += [f"{pod.item}: uses no claims" for pod in without]
    notes += [f"left out: {one}" for one in (*snapshot.missing, *run.cluster.problems)]
    return Simulation((*groups, *(one for one in alone if one is not None)), tuple(notes))


class _Run:
    """Mutable: what has been placed so far."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.cluster = Cluster(snapshot)
        self._claims = {identity(one): one for one in snapshot.claims}
        self._pods: list[Raw] = []

    def workload(self, template: PodTemplate) -> Simulated:
        """Places the pods of a workload until one does not fit: the others are like it."""
        placed: list[Placed] = []
        wanted = len(self.cluster.nodes) if template.count == PER_NODE else template.count
        placement: Placement | None = None
        helps: Remedies | None = None
        for pod in pods_of(template, self.cluster.nodes):
            claims = claims_of(pod, self._snapshot())
            placement = place(self.cluster, claims, pod, first=True)
            self._pods.append(pod)
            if placement.verdict is Verdict.PLACE:
                placed.append(self._placed(pod, claims, placement))
                continue
            helps = remedies(self.cluster, claims, pod)
            break
        return Simulated(str(template.item), template.role, wanted, tuple(placed), placement, helps)

    def claim(self, item: Item) -> Simulated | None:
        """Places a claim that no pod of the files uses; None for the others."""
        claim = self._claims[item.namespace, item.name]
        if is_allocated(claim) or any(uses(pod, claim) for pod in self._pods):
            return None
        claims = PodClaims.of([claim])
        placement = place(self.cluster, claims, first=True)
        if placement.verdict is Verdict.PLACE:
            done = (self._placed(claim, claims, placement),)
            return Simulated(str(item), "", 1, done, placement)
        return Simulated(str(item), "", 1, (), placement, remedies(self.cluster, claims))

    def _placed(self, owner: Raw, claims: PodClaims, placement: Placement) -> Placed:
        devices: list[GivenDevice] = []
        for claim, allocation in zip(claims.pending, placement.allocations, strict=True):
            status = {**mapping(claim.get("status")), "allocation": allocation}
            held = {**claim, "status": status}
            self._claims[identity(held)] = held
            self.cluster.with_claim(held)
            devices += given(held, self.cluster.snapshot)
        return Placed("/".join(identity(owner)), placement.node, tuple(devices))

    def _snapshot(self) -> ClusterSnapshot:
        return self.cluster.snapshot.replacing(claims=tuple(self._claims.values()))
