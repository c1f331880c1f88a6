"""What our default publishing costs the stock scheduler, beside the barest whole devices.

Each row is timed on a fresh control plane, in turn, several rounds; the ratio is of medians.
"""

import argparse
import asyncio
import statistics
import sys
from pathlib import Path

import yaml

from benchmarks.fleet import Fleet, control_plane
from dragoon.api.names import CLASS_SIMULATED, DRIVER_NAME
from dragoon.app import config, publishing
from dragoon.kube.port import Object
from dragoon.publish import slices

_CLASS_FILE = Path(__file__).resolve().parents[2] / "deviceclasses" / f"{CLASS_SIMULATED}.yaml"
_PER_POD = 8
_MORE_FORMS = ("whole,shared", "whole,shared,mig")


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench publish`."""
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all-forms", action="store_true", help="rows for shares and MIG too")
    parser.add_argument("--machine", default="dgx-h100", help="what each node simulates")
    parser.add_argument("--name", default="bench", help="name of the cluster")


def run(chosen: argparse.Namespace) -> None:
    """Times every row, prints one line a row and the ratio to the first."""
    whole = _published(chosen, "whole")
    rows = {"whole, name and type only": _bare(whole), "whole, the default": whole}
    if chosen.all_forms:
        rows |= {forms: _published(chosen, forms) for forms in _MORE_FORMS}
    took: dict[str, list[float]] = {name: [] for name in rows}
    for round_ in range(chosen.rounds):
        for name, published in rows.items():
            seconds = asyncio.run(_time(chosen, published))
            took[name].append(seconds)
            print(f"round {round_ + 1}: {name}: {seconds:.2f} s", file=sys.stderr)
    base = statistics.median(next(iter(took.values())))
    print(
        f"{chosen.pods} pods x {_PER_POD} whole GPUs, {chosen.nodes} nodes ({chosen.machine}), "
        "until all are bound"
    )
    for name, values in took.items():
        median = statistics.median(values)
        each = " ".join(f"{value:.2f}" for value in values)
        print(f"{name:<32} median {median:6.2f} s   ratio {median / base:.3f}   ({each})")


async def _time(chosen: argparse.Namespace, published: list[Object]) -> float:
    with control_plane(chosen.name) as state:
        fleet = await Fleet.connect(Path(state.kubeconfigs["admin"]))
        try:
            nodes = (_node_name(i) for i in range(chosen.nodes))
            await fleet.prepare(nodes, published, yaml.safe_load(_CLASS_FILE.read_text()))
            return await fleet.bind(chosen.pods, _PER_POD, CLASS_SIMULATED)
        finally:
            await fleet.close()


def _node_name(index: int) -> str:
    return f"node-{index:05d}"


def _published(chosen: argparse.Namespace, forms: str) -> list[Object]:
    """The slices that each node of this machine would publish in these forms."""
    given = {"simulate": chosen.machine, "forms": forms, "allow_unenforced_shares": "true"}
    seen = publishing.look_at_forms(config.load(given, {}))
    return [
        piece
        for i in range(chosen.nodes)
        for piece in slices.render(
            seen.inventory,
            node=_node_name(i),
            driver=DRIVER_NAME,
            wishes=seen.wishes,
            divisions=seen.divisions,
        )
    ]


def _bare(published: list[Object]) -> list[Object]:
    """The same devices with nothing but what the class reads."""
    return [
        {
            **piece,
            "spec": {
                **piece["spec"],
                "devices": [
                    {
                        "name": device["name"],
                        "attributes": {
                            name: device["attributes"][name] for name in ("type", "simulated")
                        },
                    }
                    for device in piece["spec"]["devices"]
                ],
            },
        }
        for piece in published
    ]
