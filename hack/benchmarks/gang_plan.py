"""How long the gang planner takes: one shape, many shapes, no room. No cluster.

Each plan is verified, as the controller has it. Seconds are of this process's processor time, the
best of some rounds on a snapshot that has been looked at before, as in a controller that runs.
"""

import argparse
import time
from collections.abc import Iterator, Sequence

from benchmarks import forms
from dragoon.allocator import ClusterState
from dragoon.allocator.gang import (
    GangAsk,
    GangPlan,
    NoRoom,
    Outcome,
    PlacementSnapshot,
    PodAsk,
    node_facts,
    plan,
)
from dragoon.api.names import DRIVER_NAME
from dragoon.kube.port import Object

_ROOM = {"cpu": "128", "memory": "1Ti", "pods": "110"}
_MEMORY = f'device.capacity["{DRIVER_NAME}"].memory'


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench gang-plan`."""
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=512)
    parser.add_argument("--gpus", type=int, default=8, help="of each pod")
    parser.add_argument("--shapes", type=int, default=64, help="of the gang of many shapes")
    parser.add_argument("--forms", choices=("whole", "all"), default="whole")
    parser.add_argument("--rounds", type=int, default=3)


def run(chosen: argparse.Namespace) -> None:
    """Prints a line for each question; the last has all seconds."""
    snapshot = _snapshot(chosen.nodes, every_form=chosen.forms == "all")
    alike = [_member(index, chosen.gpus, 40, 4000) for index in range(chosen.pods)]
    mixed = [_mixed(index, index % chosen.shapes) for index in range(chosen.pods)]
    room = chosen.nodes * (forms.GPUS // chosen.gpus)
    too_many = [_member(index, chosen.gpus, 40, 4000) for index in range(room + 1)]
    one = _best(snapshot, alike, chosen.rounds, GangPlan)
    print(f"one shape, {chosen.pods} pods of {chosen.gpus} GPUs: {one:.2f} s")
    many = _best(snapshot, mixed, chosen.rounds, GangPlan)
    print(f"{chosen.shapes} shapes, {chosen.pods} pods: {many:.2f} s")
    none = _best(snapshot, too_many, chosen.rounds, NoRoom)
    print(f"no room for one of {len(too_many)} pods, with a change that fits: {none:.2f} s")
    print(f"plan {one:.2f} s, {chosen.shapes} shapes {many:.2f} s, no room {none:.2f} s")


def _best(
    snapshot: PlacementSnapshot,
    members: Sequence[PodAsk],
    rounds: int,
    expected: type[Outcome],
) -> float:
    """Seconds of the fastest round. Ends the benchmark where the answer is another one."""
    ask = GangAsk("bench", tuple(members), len(members))
    seconds: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        outcome = plan(snapshot, ask)
        seconds.append(time.process_time() - begin)
        if not isinstance(outcome, expected):
            raise SystemExit(f"bench: {outcome}")
        if isinstance(outcome, NoRoom) and outcome.change is None:
            raise SystemExit(f"bench: no change was found: {outcome.message}")
    return min(seconds)


def _snapshot(count: int, *, every_form: bool) -> PlacementSnapshot:
    state = ClusterState()
    for raw in forms.classes():
        state.put_class(raw)
    nodes = []
    for serial, node in enumerate(forms.nodes(count)):
        name = node["metadata"]["name"]
        for raw in forms.slices(name, serial) if every_form else _whole(name, serial):
            state.put_slice(raw)
        nodes.append(node_facts({**node, "status": {"allocatable": _ROOM}}))
    return PlacementSnapshot(state.snapshot(), tuple(nodes))


def _whole(node: str, serial: int) -> Iterator[Object]:
    """One slice with the whole GPUs, which need no counters when there is no other form."""
    devices = [
        {key: value for key, value in device.items() if key != "consumesCounters"}
        for piece in forms.slices(node, serial)
        for device in piece["spec"].get("devices", ())
        if device["attributes"]["type"]["string"] == "gpu"
    ]
    pool = {"name": f"{node}/gpu", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER_NAME, "nodeName": node, "pool": pool, "devices": devices}
    yield {"metadata": {"name": node}, "spec": spec}


def _mixed(index: int, shape: int) -> PodAsk:
    """Members that differ in how many GPUs they want, of what size, and in cpu."""
    return _member(index, 1 + shape % 8, 20 + shape // 8, 4000 + 10 * shape)


def _member(index: int, gpus: int, gibibytes: int, cpu: int) -> PodAsk:
    expression = f'{_MEMORY}.compareTo(quantity("{gibibytes}Gi")) >= 0'
    wish = {
        "deviceClassName": "gpu",
        "count": gpus,
        "selectors": [{"cel": {"expression": expression}}],
    }
    claim = {
        "metadata": {"namespace": "bench", "name": f"claim-{index}", "uid": f"claim-{index}"},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": wish}]}},
    }
    return PodAsk("bench", f"pod-{index}", f"pod-{index}", {"cpu": cpu}, (claim,))
