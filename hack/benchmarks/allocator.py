"""Our allocator beside kube-scheduler's on the same input, and CEL alone.

Two ratios, of their seconds to ours: one claim on one node, decided again and again while the node
fills; and 1,000 nodes filled pod by pod, both with the same order of nodes and the first that fits.
Every decision has to be the same, or there is no ratio.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import forms
from dragoon.allocator import (
    Allocated,
    Answer,
    ClusterState,
    Snapshot,
    allocate_anywhere,
    allocate_on,
)
from dragoon.allocator.claims import node_view
from dragoon.allocator.model import Node
from dragoon.cel import compile_selector, device_view
from dragoon.kube.port import Object

_STRUCTURED = Path(__file__).resolve().parent / "structured"
_SELECTOR = (
    'device.driver == "gpu.dragoon.dev" && '
    'device.attributes["gpu.dragoon.dev"].productName.lowerAscii().matches("^.*h100.*$") && '
    'device.capacity["gpu.dragoon.dev"].memory.compareTo(quantity("40Gi")) >= 0'
)
"""Driver equality, lowerAscii().matches() and compareTo(quantity())."""
_EVALUATIONS = 100_000
_REPEAT = 20


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench allocator`."""
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=7_000)
    parser.add_argument("--rounds", type=int, default=3, help="of what takes less than a second")


def run(chosen: argparse.Namespace) -> None:
    """Prints a line for each comparison; the last is the smaller ratio."""
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "structured"
        subprocess.run(["go", "build", "-o", binary, "."], cwd=_STRUCTURED, check=True)
        one = min(_compare(binary, 1, 40, _on_one) for _ in range(chosen.rounds))
        print(f"one claim on one node: ratio {one:.2f}")
        filled = _compare(binary, chosen.nodes, chosen.pods, _on_any)
        print(f"{chosen.nodes} nodes filled by {chosen.pods} pods: ratio {filled:.2f}")
    print(f"CEL: {max(_evaluate() for _ in range(chosen.rounds)):,.0f} evaluations/s")
    print(f"ratio {min(one, filled):.2f}")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """seconds: of all decisions. places: per pod the node's position, and the devices' names."""

    seconds: float
    places: list[tuple[int, list[str]]]


def _on_one(cluster: Snapshot, claim: Object, nodes: Sequence[Node]) -> Answer | None:
    """One attempt on one node, without remembering where the claim did not fit."""
    return allocate_on(cluster, [claim], nodes[0])


def _on_any(cluster: Snapshot, claim: Object, nodes: Sequence[Node]) -> Answer | None:
    return allocate_anywhere(cluster, [claim], nodes)


_Decide = Callable[[Snapshot, Object, Sequence[Node]], Answer | None]


def _compare(binary: Path, nodes: int, pods: int, decide: _Decide) -> float:
    scenario = {
        "nodes": forms.nodes(nodes),
        "classes": forms.classes(),
        "slices": [
            one
            for serial, node in enumerate(forms.nodes(nodes))
            for one in forms.slices(node["metadata"]["name"], serial)
        ],
        "claims": forms.claims(pods, whole=1 if decide is _on_one else 4),
        "repeat": _REPEAT if decide is _on_one else 1,
    }
    theirs = _theirs(binary, scenario)
    ours = _ours(scenario, decide)
    different = [
        (pod, left, right)
        for pod, (left, right) in enumerate(zip(ours.places, theirs.places, strict=True))
        if left != right
    ]
    if different:
        raise SystemExit(f"bench: {len(different)} decisions differ, first {different[0]}")
    placed = sum(node >= 0 for node, _ in ours.places)
    print(
        f"{nodes} nodes, {pods} pods ({placed} placed): ours {ours.seconds:.3f} s, "
        f"Go {theirs.seconds:.3f} s",
        file=sys.stderr,
    )
    return theirs.seconds / ours.seconds


def _theirs(binary: Path, scenario: dict[str, Any]) -> _Outcome:
    done = subprocess.run(
        [binary], input=json.dumps(scenario), capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    devices = [names or [] for names in answer["devices"]]
    return _Outcome(answer["seconds"], list(zip(answer["nodes"], devices, strict=True)))


def _ours(scenario: dict[str, Any], decide: _Decide) -> _Outcome:
    state = ClusterState()
    for raw in scenario["classes"]:
        state.put_class(raw)
    for raw in scenario["slices"]:
        state.put_slice(raw)
    nodes = [node_view(raw) for raw in scenario["nodes"]]
    positions = {node.name: position for position, node in enumerate(nodes)}
    state.snapshot()
    gc.collect()
    places: list[tuple[int, list[str]]] = []
    start = 0
    begin = time.perf_counter()
    for claim in scenario["claims"]:
        order = nodes[start:] + nodes[:start]
        for _ in range(scenario["repeat"]):
            answer = decide(state.snapshot(), claim, order)
        if not isinstance(answer, Allocated):
            places.append((-1, []))
            continue
        found = positions[answer.node]
        start = (found + 1) % len(nodes)
        places.append((found, _keep(state, claim, answer.allocations)))
    return _Outcome(time.perf_counter() - begin, places)


def _keep(state: ClusterState, claim: Object, allocations: Sequence[dict[str, Any]]) -> list[str]:
    """Marks the claim as allocated, as its watch event would."""
    state.put_claim({**claim, "status": {"allocation": allocations[0]}})
    return [result["device"] for result in allocations[0]["devices"]["results"]]


def _evaluate() -> float:
    """Evaluations a second of one selector, with cost accounting, on devices all different."""
    raws = [device for one in forms.slices("node", 0) for device in one["spec"].get("devices", [])]
    views = [device_view("gpu.dragoon.dev", raw) for raw in raws]
    evaluate = compile_selector(_SELECTOR).evaluate
    rounds = _EVALUATIONS // len(views)
    # Processor time: there is nobody to compare with who would be slowed down alike.
    begin = time.process_time()
    for _ in range(rounds):
        for view in views:
            evaluate(view)
    return rounds * len(views) / (time.process_time() - begin)
