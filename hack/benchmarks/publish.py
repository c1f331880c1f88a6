"""What our default publishing costs the stock scheduler.

Beside devices with the attributes of a usual GPU driver, and beside devices that say nothing but
what their class reads. Each row is timed on a fresh control plane, in random order, several rounds;
ratios are of medians. The CPU time of kube-scheduler tells the same, with less noise from whatever
else this machine does.
"""

import argparse
import asyncio
import random
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.spending import cpu_seconds
from dragoon.api.names import CLASS_SIMULATED
from dragoon.kube.port import Object
from testbed.fleet import Fleet, control_plane, slices_of

_PER_POD = 8
_MORE_FORMS = ("whole,shared", "whole,shared,mig")
_SCHEDULER = "kube-scheduler"
# What the class reads; what NVIDIA's driver publishes too (it has addressingMode besides).
_READ = ("type", "simulated")
_USUAL = (
    *("type", "uuid", "productName", "brand", "architecture"),
    *("cudaComputeCapability", "driverVersion", "cudaDriverVersion"),
    *(f"resource.kubernetes.io/{name}" for name in ("pciBusID", "pcieRoot", "numaNode")),
)


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench publish`."""
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all-forms", action="store_true", help="rows for shares and MIG too")
    parser.add_argument("--machine", default="dgx-h100", help="what each node simulates")
    parser.add_argument("--name", default="bench", help="name of the cluster")


@dataclass
class Took:
    """Seconds of each round: until all pods were bound, and of kube-scheduler's CPU meanwhile."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def run(chosen: argparse.Namespace) -> None:
    """Times every row, prints one line a row and the ratios to the usual attributes."""
    whole = _published(chosen, "whole")
    usual = "whole, usual attributes"
    rows = {
        usual: _only(whole, {*_READ, *_USUAL}),
        "whole, the default": whole,
        "whole, type and memory only": _only(whole, {*_READ}),
    }
    if chosen.all_forms:
        rows |= {forms: _published(chosen, forms) for forms in _MORE_FORMS}
    took = {name: Took() for name in rows}
    for round_ in range(chosen.rounds):
        for name in random.sample(list(rows), len(rows)):
            wall, cpu = asyncio.run(_time(chosen, rows[name]))
            took[name].wall.append(wall)
            took[name].cpu.append(cpu)
            print(f"round {round_ + 1}: {name}: {wall:.2f} s, CPU {cpu:.2f} s", file=sys.stderr)
    print(
        f"{chosen.pods} pods x {_PER_POD} whole GPUs, {chosen.nodes} nodes ({chosen.machine}), "
        f"until all are bound; ratios to {usual!r}"
    )
    for name, values in took.items():
        attributes = len(rows[name][-1]["spec"]["devices"][-1]["attributes"])
        print(
            f"{name:<28}{attributes:>3} attributes  {_line(values.wall, took[usual].wall)}  "
            f"{_SCHEDULER}'s CPU {_line(values.cpu, took[usual].cpu)}"
        )


def _line(values: list[float], base: list[float]) -> str:
    median = statistics.median(values)
    ratio = median / statistics.median(base)
    return f"{median:6.2f} s ({min(values):.2f} to {max(values):.2f})  ratio {ratio:.3f}"


async def _time(chosen: argparse.Namespace, published: list[Object]) -> tuple[float, float]:
    """Seconds until all are bound, and of the scheduler's CPU."""
    with control_plane(chosen.name) as state:
        scheduler = state.processes[_SCHEDULER].pid
        fleet = await Fleet.connect(Path(state.kubeconfigs["admin"]))
        try:
            nodes = (_node_name(i) for i in range(chosen.nodes))
            await fleet.prepare(nodes, published)
            before = cpu_seconds(scheduler)
            wall = await fleet.bind(chosen.pods, _PER_POD, CLASS_SIMULATED)
            return wall, cpu_seconds(scheduler) - before
        finally:
            await fleet.close()


def _node_name(index: int) -> str:
    return f"node-{index:05d}"


def _published(chosen: argparse.Namespace, forms: str) -> list[Object]:
    """The slices of all nodes in these forms."""
    return slices_of(map(_node_name, range(chosen.nodes)), chosen.machine, forms)


def _only(published: list[Object], kept: set[str]) -> list[Object]:
    """The same devices with these attributes, as far as they have them."""
    return [
        {**piece, "spec": {**piece["spec"], "devices": _with(piece["spec"]["devices"], kept)}}
        for piece in published
    ]


def _with(devices: list[Object], kept: set[str]) -> list[Object]:
    return [
        {
            **device,
            "attributes": {
                name: value for name, value in device["attributes"].items() if name in kept
            },
        }
        for device in devices
    ]
