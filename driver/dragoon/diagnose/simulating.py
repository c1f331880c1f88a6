"""What if these files were applied: where their pods would be placed, one after the other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoon.allocator.gang import GangPlan
from dragoon.api.gang import ANNOTATION_SCOPE, LABEL
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.counting import counted_claim
from dragoon.diagnose.devices import GivenDevice, given
from dragoon.diagnose.gangs import GangAnswer, GangWish, answer, find_gang, size_from
from dragoon.diagnose.manifests import Item, Manifests, Raw, mapping, text
from dragoon.diagnose.placing import Placement, Verdict, place
from dragoon.diagnose.pods import PodClaims, claims_of, is_allocated, pods_of, uses
from dragoon.diagnose.remedies import Remedies, remedies
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.diagnose.workloads import PER_NODE, PodTemplate, pod_templates
from dragoon.errors import DragoonError


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
    the last. remedies: for the first that was not. gang: what was said of all members together, for
    the pods of a gang; placement and remedies are then None.
    """

    object: str
    role: str
    wanted: int
    placed: tuple[Placed, ...]
    placement: Placement | None
    remedies: Remedies | None = None
    gang: GangAnswer | None = None

    @property
    def verdict(self) -> Verdict:
        """Place if all were placed, else what was said of the first that was not."""
        if self.gang is not None:
            return self.gang.verdict
        if len(self.placed) == self.wanted or self.placement is None:
            return Verdict.PLACE
        return self.placement.verdict

    @property
    def nodes(self) -> tuple[tuple[str, int], ...]:
        """Pods by node."""
        return tuple(Counter(one.node for one in self.placed).items())


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything in the files, in their order.

    notes: what was left out, and why. is_whole: no document of the files is among that.
    """

    groups: tuple[Simulated, ...]
    notes: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def is_fine(self) -> bool:
        """Whether everything in the files would be placed."""
        return self.is_whole and all(group.verdict is Verdict.PLACE for group in self.groups)


def simulate(snapshot: ClusterSnapshot, manifests: Manifests) -> Simulation:
    """Places the pods and claims of files into a copy of a snapshot.

    Pods are placed one after the other, each on the first node by name on which it fits, and hold
    their devices from then on. The pods of a gang are placed all together, or none of them.
    """
    with_files = snapshot.with_items(manifests.items)
    run = _Run(with_files)
    pods = [pod for item in manifests.items for pod in pod_templates(item)]
    groups: list[Simulated] = []
    without: list[PodTemplate] = []
    for together in _by_gang(pods):
        first = together[0]
        if first.labels.get(LABEL):
            groups += run.gang(together)
        elif first.spec.get("resourceClaims") or counted_claim({"spec": first.spec}, with_files):
            groups.append(run.workload(first))
        else:
            without.append(first)
    alone = [run.claim(item) for item in manifests.of_kind("ResourceClaim")]
    unread = (*manifests.unreadable, *manifests.foreign)
    notes = [f"{bad.origin}: {bad.problem}" for bad in unread]
    notes += [f"{pod.item}: uses no claims" for pod in without]
    notes += [f"left out: {one}" for one in (*snapshot.missing, *run.cluster.problems)]
    every = (*groups, *(one for one in alone if one is not None))
    if not every:
        notes.append("no pod with claims and no claim in these files: nothing to place")
    return Simulation(every, tuple(notes), is_whole=not unread)


def _by_gang(pods: Iterable[PodTemplate]) -> list[list[PodTemplate]]:
    """Templates of one gang together, all others alone, in the order of the first of each.

    A gang is what one owner has with the label, or all owners where the pods say so.
    """
    found: dict[tuple[str, ...], list[PodTemplate]] = {}
    for number, pod in enumerate(pods):
        label = text(pod.labels.get(LABEL))
        key: tuple[str, ...] = (str(number),)
        if label:
            joined = pod.annotations.get(ANNOTATION_SCOPE) == "name"
            key = (pod.item.namespace, label, "" if joined else str(pod.item))
        found.setdefault(key, []).append(pod)
    return list(found.values())


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

    def gang(self, templates: Sequence[PodTemplate]) -> list[Simulated]:
        """Places the pods of a gang, one group for each template."""
        by_template = [list(pods_of(one, self.cluster.nodes)) for one in templates]
        pods = [pod for of_one in by_template for pod in of_one]
        self._pods += pods
        self.cluster.snapshot = self._snapshot()
        first = templates[0]
        name = f"{first.item.namespace}/{text(first.labels.get(LABEL))}"
        try:
            size = size_from(first.annotations, len(pods))
            found = answer(self.cluster, self._wish(name, first, tuple(pods), size))
        except DragoonError as error:
            found = GangAnswer(name, Verdict.NEVER, error.message)
        placed = {} if found.plan is None else self._keep(found.plan)
        return [
            Simulated(
                str(template.item),
                template.role,
                len(of_one),
                tuple(placed[one] for pod in of_one if (one := "/".join(identity(pod))) in placed),
                None,
                gang=found,
            )
            for template, of_one in zip(templates, by_template, strict=True)
        ]

    def _wish(self, name: str, first: PodTemplate, pods: tuple[Raw, ...], size: int) -> GangWish:
        """What the gang is to be; a Gang of that name that a user wrote says more than labels."""
        label = text(first.labels.get(LABEL))
        written = find_gang(self.cluster.snapshot, first.item.namespace, label)
        if written is None:
            return GangWish(name, pods, size)
        spec = written.spec
        return GangWish(name, pods, spec.size, spec.max_size, spec.topology)

    def _keep(self, plan: GangPlan) -> dict[str, Placed]:
        """The members by namespace and name; from now on they hold their devices."""
        found: dict[str, Placed] = {}
        for one in plan.placements:
            devices: list[GivenDevice] = []
            for claim in one.pod.claims:
                allocation = one.allocations.get(text(mapping(claim.get("metadata")).get("uid")))
                if allocation is not None:
                    devices += self._held(claim, allocation)
            found[str(one.pod)] = Placed(str(one.pod), one.node, tuple(devices))
        return found

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
            devices += self._held(claim, allocation)
        return Placed("/".join(identity(owner)), placement.node, tuple(devices))

    def _held(self, claim: Raw, allocation: Raw) -> Sequence[GivenDevice]:
        """The devices of the claim, which holds them from now on."""
        held = {**claim, "status": {**mapping(claim.get("status")), "allocation": allocation}}
        self._claims[identity(held)] = held
        self.cluster.with_claim(held)
        return given(held, self.cluster.snapshot)

    def _snapshot(self) -> ClusterSnapshot:
        return self.cluster.snapshot.replacing(claims=tuple(self._claims.values()))
