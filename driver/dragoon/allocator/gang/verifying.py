"""An independent check of a plan: rule by rule, on raw objects, without search.

Shares nothing with the planner but the reading of claims' UIDs. Devices are the business of the
allocator's verifier, which is asked node by node; here are the sums over members and nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dragoon.allocator.gang import rendering
from dragoon.allocator.gang.model import (
    GangAsk,
    GangPlan,
    NodeFacts,
    Placement,
    PlacementSnapshot,
    PodAsk,
)
from dragoon.allocator.model import PoolId, Raw
from dragoon.allocator.verifier import verify
from dragoon.allocator.verifier_world import admits
from dragoon.api.gang import Level


def verify_plan(snapshot: PlacementSnapshot, ask: GangAsk, plan: GangPlan) -> list[str]:
    """Every rule that the plan breaks, as sentences; none for a right plan."""
    return list(_Check(snapshot, ask, plan).problems())


class _Check:
    """One plan."""

    def __init__(self, snapshot: PlacementSnapshot, ask: GangAsk, plan: GangPlan) -> None:
        self._snapshot = snapshot
        self._ask = ask
        self._plan = plan
        self._nodes = {one.name: one for one in snapshot.nodes}
        self._on: dict[str, list[Placement]] = defaultdict(list)
        for one in plan.placements:
            self._on[one.node].append(one)
        self._given = {uid: raw for one in plan.placements for uid, raw in one.allocations.items()}

    def problems(self) -> Iterator[str]:
        yield from self._members()
        yield from self._claims()
        for name, placed in self._on.items():
            node = self._nodes.get(name)
            if node is None or name in self._ask.excluded:
                yield f"node {name} is not there or excluded"
                continue
            for one in placed:
                yield from _refused(one.pod, node)
            yield from _overfull(placed, node)
        yield from self._devices()
        for level in self._ask.topology.required:
            yield from self._agreement(level)

    def _members(self) -> Iterator[str]:
        """Each member once; the first ones all, the others unless they were left out."""
        placed = Counter(one.pod.uid for one in self._plan.placements)
        known = {one.uid for one in self._ask.members}
        here = {one.uid for one in self._ask.members if one.node}
        for uid, count in placed.items():
            if count > 1 or uid not in known:
                yield f"member {uid} is placed {count} times, or is none"
            if uid in self._plan.left_out:
                yield f"member {uid} is placed and left out"
        running = here | placed.keys()
        if len(running) < self._ask.minimum:
            yield f"{len(running)} members of {self._ask.minimum} have a place"
        if self._ask.maximum and len(running) > self._ask.maximum:
            yield f"{len(running)} members have a place, allowed are {self._ask.maximum}"
        for uid in known - running - set(self._plan.left_out):
            yield f"member {uid} is neither placed nor left out"

    def _claims(self) -> Iterator[str]:
        """Every pending claim of a placed member has one allocation that admits all its nodes."""
        times = Counter(uid for one in self._plan.placements for uid in one.allocations)
        pending: set[str] = set()
        for one in self._plan.placements:
            node = self._nodes.get(one.node)
            for claim in one.pod.claims:
                uid = str(claim["metadata"]["uid"])
                held = (claim.get("status") or {}).get("allocation")
                if not held:
                    pending.add(uid)
                allocation = held or self._given.get(uid) or {}
                selector = allocation.get("nodeSelector")
                if selector and node and not _admits(selector, node):
                    yield f"claim {uid} cannot be used on node {one.node}"
        for uid in pending | times.keys():
            if times[uid] != 1 or uid not in pending:
                yield f"claim {uid} is allocated {times[uid]} times"

    def _devices(self) -> Iterator[str]:
        """The allocator's verifier, node by node; what was given before is held."""
        cluster = self._snapshot.cluster
        classes = [rendering.raw_class(one) for one in cluster.classes.values()]
        floating = self._floating()
        elsewhere: list[Raw] = []
        for name, placed in self._on.items():
            node = self._nodes.get(name)
            if node is None:
                continue
            pools = dict.fromkeys((*cluster.by_node.get(name, ()), *floating))
            slices, rules = self._slices(pools), self._rules(pools)
            held: list[Raw] = [*self._holders(pools), *elsewhere]
            for together in _checked_together(placed):
                claims = [
                    _asking(claim)
                    for one in together
                    for claim in one.pod.claims
                    if claim["metadata"]["uid"] in one.allocations
                ]
                given = [self._given[claim["metadata"]["uid"]] for claim in claims]
                problems = verify(
                    claims,
                    given,
                    classes=classes,
                    slices=slices,
                    allocated_claims=held,
                    node=rendering.raw_node(node),
                    taint_rules=rules,
                )
                yield from (f"node {name}: {problem}" for problem in problems)
                new = [{"status": {"allocation": raw}} for raw in given]
                held += new
                elsewhere += new if floating else ()

    def _floating(self) -> tuple[PoolId, ...]:
        """Pools of several nodes, where they matter: one is used, or all devices are wanted."""
        floating = self._snapshot.cluster.floating
        results = (
            PoolId(result["driver"], result["pool"])
            for raw in self._given.values()
            for result in raw["devices"]["results"]
        )
        wants_all = any(
            request.get("exactly", request).get("allocationMode") == "All"
            for one in self._plan.placements
            for claim in one.pod.claims
            for entry in _asking(claim)["spec"]["devices"]["requests"]
            for request in (entry, *(entry.get("firstAvailable") or ()))
        )
        return floating if wants_all or not set(floating).isdisjoint(results) else ()

    def _slices(self, pools: Iterable[PoolId]) -> list[Raw]:
        return [
            rendering.raw_slice(one, self._ask.tolerations)
            for pool in pools
            for one in self._snapshot.cluster.pools[pool].slices
        ]

    def _rules(self, pools: Iterable[PoolId]) -> list[Raw]:
        rules = {
            one.name: one for pool in pools for one in self._snapshot.cluster.pools[pool].rules
        }
        return [
            rendering.raw_rule(one)
            for one in rules.values()
            if not rendering.is_tolerated(one.taint, self._ask.tolerations)
        ]

    def _holders(self, pools: Iterable[PoolId]) -> Iterator[Raw]:
        for usage in (self._snapshot.cluster.usage.get(pool) for pool in pools):
            if usage is not None:
                for holds in (*usage.exclusive.values(), *usage.shared.values()):
                    yield rendering.raw_holder(dict.fromkeys(holds))

    def _agreement(self, level: Level) -> Iterator[str]:
        """All members have one value of a required level."""
        found: set[Any] = set()
        for pod, node in self._places():
            if level.node_label:
                labels = self._nodes[node].labels if node in self._nodes else {}
                found.add(labels.get(level.node_label))
                continue
            for allocation in self._allocations(pod):
                for result in allocation["devices"]["results"]:
                    found |= self._values(result, level.attribute)
        if len(found) > 1 or None in found:
            name = level.node_label or level.attribute
            yield f"{name} is not the same for all members: {sorted(map(str, found))}"

    def _places(self) -> Iterator[tuple[PodAsk, str]]:
        yield from ((one.pod, one.node) for one in self._plan.placements)
        placed = {one.pod.uid for one in self._plan.placements}
        yield from (
            (one, one.node) for one in self._ask.members if one.node and one.uid not in placed
        )

    def _allocations(self, pod: PodAsk) -> Iterator[Raw]:
        for claim in pod.claims:
            held = (claim.get("status") or {}).get("allocation")
            found = held or self._given.get(str(claim["metadata"]["uid"]))
            if found:
                yield found

    def _values(self, result: Raw, attribute: str) -> set[Any]:
        """The value of a device, None where it should have one; nothing for other drivers' ones."""
        domain, _, short = attribute.partition("/")
        pool = self._snapshot.cluster.pools.get(PoolId(result["driver"], result["pool"]))
        for device in (one for slice_ in (pool.slices if pool else ()) for one in slice_.devices):
            if device.name == result["device"]:
                values = {name: value for name, _, value in device.facts.attributes}
                own = values.get(short) if domain == result["driver"] else None
                value = values.get(attribute, own)
                return {value} if value is not None or domain == result["driver"] else set()
        return set()


def _checked_together(placed: Sequence[Placement]) -> Iterator[Sequence[Placement]]:
    """All pods of a node at once; each alone where one has admin access: only pods differ in it."""
    admin = any(
        result.get("adminAccess")
        for one in placed
        for raw in one.allocations.values()
        for result in raw["devices"]["results"]
    )
    if admin:
        yield from ([one] for one in placed)
    else:
        yield placed


def _asking(claim: Raw) -> Raw:
    """The claim with the list that the verifier reads, also where it asks for nothing."""
    devices = (claim.get("spec") or {}).get("devices") or {}
    return {**claim, "spec": {"devices": {"requests": [], **devices}}}


def _admits(selector: Raw, node: NodeFacts) -> bool:
    return admits({"nodeSelector": selector}, rendering.raw_node(node))


def _refused(pod: PodAsk, node: NodeFacts) -> Iterator[str]:
    """Rules about the node itself that a member breaks."""
    if pod.node and pod.node != node.name:
        yield f"member {pod} is bound to node {pod.node}, planned on {node.name}"
    if any(node.labels.get(name) != value for name, value in pod.node_selector.items()):
        yield f"member {pod}: node {node.name} does not match its nodeSelector"
    if pod.affinity is not None and not _admits(pod.affinity, node):
        yield f"member {pod}: node {node.name} does not match its affinity"
    if pod.node:
        return
    for taint in node.taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not rendering.is_tolerated(
            taint, pod.tolerations
        ):
            yield f"member {pod}: taint {taint} of node {node.name} is not tolerated"
    key = "node.kubernetes.io/unschedulable"
    if node.unschedulable and not any(
        one.operator == "Exists" and one.key in {"", key} and one.effect in {"", "NoSchedule"}
        for one in pod.tolerations
    ):
        yield f"member {pod}: node {node.name} is cordoned"


def _overfull(placed: Sequence[Placement], node: NodeFacts) -> Iterator[str]:
    """Resources of which the members ask for more than is left."""
    new = [one.pod for one in placed if not one.pod.node]
    if new and node.pods + len(new) > node.most_pods:
        yield f"node {node.name}: {node.pods} + {len(new)} pods, allowed are {node.most_pods}"
    wanted: Counter[str] = Counter()
    for pod in new:
        wanted.update(pod.requests)
    amounts: Mapping[str, int] = wanted
    for name, amount in amounts.items():
        used, room = node.used.get(name, 0), node.allocatable.get(name, 0)
        if amount > 0 and used + amount > room:
            yield f"node {node.name}: {name} {used} + {amount} of {room}"
