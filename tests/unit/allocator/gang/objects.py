"""Small clusters for gangs: nodes with cards, claims and members, as short as they can be."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from dragoon.allocator import ClusterState
from dragoon.allocator.gang import GangAsk, NodeFacts, Outcome, PlacementSnapshot, PodAsk, plan
from tests.unit.allocator.objects import DRIVER, GPU_CLASS, Raw, class_of, device, holding, slice_of

GROUP = f"{DRIVER}/nvlinkDomain"
CLIQUE = f"{DRIVER}/fabricClique"
TYPE = f"device.attributes['{DRIVER}'].type"
WHOLE = class_of(f"device.driver == '{DRIVER}' && {TYPE} == 'gpu'", name="whole")
MIG = class_of(f"device.driver == '{DRIVER}' && {TYPE} == 'mig'", name="mig")
SHARED = class_of(f"device.driver == '{DRIVER}' && {TYPE} == 'shared'", name="shared")
NIC_DRIVER = "nic.example"
NIC = class_of(f"device.driver == '{NIC_DRIVER}'", name="nic")
CLASSES = (GPU_CLASS, WHOLE, MIG, SHARED, NIC)


def gpus(*groups: str | None, start: int = 0, **fields: Any) -> list[Raw]:
    """Whole cards without counters, each with the NVLink domain given, None without one."""
    return [
        device(
            f"gpu-{start + index}",
            type="gpu",
            uuid=f"uuid-{index}",
            **({} if group is None else {"nvlinkDomain": group}),
            **fields,
        )
        for index, group in enumerate(groups)
    ]


def partitioned(index: int, parts: int = 2, **fields: Any) -> list[Raw]:
    """A card that can be had whole or in parts, which one counter set keeps apart."""
    name = f"card-{index}"

    def uses(*some: int) -> list[Raw]:
        counters = {f"part-{one}": {"value": "1"} for one in some}
        return [{"counterSet": name, "counters": counters}]

    found = [device(f"{name}", type="gpu", consumesCounters=uses(*range(parts)), **fields)]
    found += (
        device(f"{name}-mig-{one}", type="mig", profile="1p", consumesCounters=uses(one))
        for one in range(parts)
    )
    return found


def counter_set(index: int, parts: int = 2) -> Raw:
    counters = {f"part-{one}": {"value": "1"} for one in range(parts)}
    return {"name": f"card-{index}", "counters": counters}


def slices_of(node: str, devices: Sequence[Raw], sets: Sequence[Raw] = ()) -> list[Raw]:
    """The slices of a node's pool."""
    total = 2 if sets else 1
    found = [slice_of(*devices, node=node, name=f"{node}-devices", count=total)]
    if sets:
        found.append(
            slice_of(node=node, name=f"{node}-sets", count=total, sharedCounters=list(sets))
        )
        del found[-1]["spec"]["devices"]
    return found


def node(name: str, *, cpu: int = 64_000, **fields: Any) -> NodeFacts:
    """A node with that many thousandths of a core; `labels` and the rest as fields."""
    labels = {"kubernetes.io/hostname": name, **fields.pop("labels", {})}
    return NodeFacts(name, labels, allocatable={"cpu": cpu}, **fields)


def snapshot(
    nodes: Iterable[NodeFacts],
    slices: Iterable[Raw],
    held: Iterable[Raw] = (),
    rules: Iterable[Raw] = (),
    classes: Iterable[Raw] = CLASSES,
    **fields: Any,
) -> PlacementSnapshot:
    state = ClusterState()
    for raw in classes:
        state.put_class(raw)
    for raw in slices:
        state.put_slice(raw)
    for raw in rules:
        state.put_rule(raw)
    for raw in held:
        state.put_claim(raw)
    return PlacementSnapshot(state.snapshot(), tuple(nodes), **fields)


def wish(amount: int = 1, class_name: str = "whole", name: str = "g", **fields: Any) -> Raw:
    """A request."""
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": amount}
    return {"name": name, "exactly": {**exactly, **fields}}


def either(*alternatives: tuple[str, int], name: str = "g") -> Raw:
    """A request with alternatives: class and count of each, the best first."""
    subs = [
        {
            "name": f"a{index}",
            "deviceClassName": class_name,
            "allocationMode": "ExactCount",
            "count": amount,
        }
        for index, (class_name, amount) in enumerate(alternatives)
    ]
    return {"name": name, "firstAvailable": subs}


def claim(name: str, *requests: Raw, same: str = "") -> Raw:
    devices: Raw = {"requests": list(requests)}
    if same:
        devices["constraints"] = [{"matchAttribute": same}]
    return {
        "metadata": {"namespace": "team-a", "name": name, "uid": f"uid-{name}"},
        "spec": {"devices": devices},
    }


def member(name: str, *claims: Raw, cpu: int = 1000, **fields: Any) -> PodAsk:
    return PodAsk("team-a", name, f"pod-{name}", {"cpu": cpu}, tuple(claims), **fields)


def members(amount: int, *requests: Raw, same: str = "", **fields: Any) -> list[PodAsk]:
    """That many members, each with a claim of its own."""
    return [
        member(f"w{index}", claim(f"c{index}", *requests, same=same), **fields)
        for index in range(amount)
    ]


def gang(found: Sequence[PodAsk], minimum: int | None = None, **fields: Any) -> GangAsk:
    return GangAsk("g", tuple(found), len(found) if minimum is None else minimum, **fields)


def planned(cluster: PlacementSnapshot, ask: GangAsk) -> Outcome:
    """The plan with share IDs that count."""
    numbers = count(1)
    return plan(cluster, ask, share_ids=lambda: f"00000000-0000-4000-8000-{next(numbers):012d}")


def where(outcome: Outcome) -> dict[str, str]:
    """Node by member."""
    return {one.pod.name: one.node for one in getattr(outcome, "placements", ())}


def devices_of(outcome: Outcome) -> dict[str, list[str]]:
    """`node/device` by member, sorted."""
    return {
        one.pod.name: sorted(
            f"{result['pool'].partition('/')[0]}/{result['device']}"
            for raw in one.allocations.values()
            for result in raw["devices"]["results"]
        )
        for one in getattr(outcome, "placements", ())
    }


PAIRS = ("a", "a", "b", "b", "c", "c", "d", "d")


def two_nodes_of_pairs(*held: Raw) -> PlacementSnapshot:
    other = tuple(f"{one}'" for one in PAIRS)
    return snapshot(
        [node("n1"), node("n2")],
        [*slices_of("n1", gpus(*PAIRS)), *slices_of("n2", gpus(*other))],
        held,
    )


def busy(pairs: int, on: str) -> list[Raw]:
    names = [f"gpu-{index}" for index in range(2 * pairs)]
    return [holding(*names, pool=f"{on}/gpu", name=f"busy-{on}")]
