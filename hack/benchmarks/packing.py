"""How full the planner packs the open GPU traces, beside FGD's published figures. No cluster.

Each pod comes alone, with its CPU, memory, allowed models, and cards or a share of one. The node and
the card are chosen with the planner's own measure of what is lost (`dragoon.allocator.gang`), of a
cluster that is kept up pod by pod; `tests/unit/benchmarks` has the whole planner choose the same.
The mix of pods is learned from those that have come; the list itself is not looked at. FGD knows it.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from statistics import mean

from benchmarks import openb
from benchmarks.packing_replay import Replay
from benchmarks.packing_rules import BestFit, FirstFit, Planner, Rule
from realcluster.failure import ClusterError

_RULES: Mapping[str, Callable[[], Rule]] = {
    "dragoon": Planner,
    "first fit": FirstFit,
    "best fit": BestFit,
}
_BESIDE = Path(__file__).resolve().parents[3] / "shared/data/openb"
"""Of the repository's folder."""


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench packing`."""
    folder = Path(os.environ.get("DRAGOON_TRACES") or _BESIDE)
    parser.add_argument("--traces", type=Path, default=folder, help="folder of the lists")
    parser.add_argument("--lists", nargs="+", choices=tuple(openb.LISTS), default=openb.LISTS)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each list")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")


def run(chosen: argparse.Namespace) -> None:
    """Prints a line for each list; the last has what Dragoon allocates of each."""
    try:
        boxes = openb.boxes(chosen.traces)
        known = {name: openb.pods(chosen.traces, name) for name in chosen.lists}
    except openb.TraceError as error:
        raise ClusterError(str(error)) from error
    cards = sum(one.cards for one in boxes)
    print(f"{len(boxes)} nodes with {cards} GPUs; GPUs allocated, in per cent, of {chosen.seeds}")
    print("runs each, when pods that ask for 130 % of them have come:")
    print(f"{'list':12} {'dragoon':>16} {'FGD':>6} {'first fit':>10} {'best fit':>9}")
    ours: list[str] = []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for name, pods in known.items():
            begin = time.monotonic()
            runs = [(boxes, pods, rule, seed) for rule in _RULES for seed in range(chosen.seeds)]
            given = iter(list(pool.map(_allocated, *zip(*runs, strict=True))))
            of_rule = {rule: [next(given) for _ in range(chosen.seeds)] for rule in _RULES}
            own = of_rule["dragoon"]
            span = f"{mean(own):.1f} ({min(own):.1f}-{max(own):.1f})"
            others = f"{mean(of_rule['first fit']):10.1f} {mean(of_rule['best fit']):9.1f}"
            seconds = time.monotonic() - begin
            print(f"{name:12} {span:>16} {openb.LISTS[name]:6.1f} {others}   {seconds:.0f} s")
            ours.append(f"{mean(own):.1f}")
    print("packing", *ours)


def _allocated(
    boxes: Sequence[openb.Box], pods: Sequence[openb.Pod], rule: str, seed: int
) -> float:
    """Of all GPUs, in per cent."""
    capacity = openb.CARD * sum(one.cards for one in boxes)
    random = Random(seed)  # noqa: S311 - the order of arrivals, no secret
    coming = openb.arrivals(pods, capacity, random)
    order = random.sample(boxes, len(boxes))
    replay = Replay(order, _RULES[rule]())
    placed = sum(pod.size for pod in coming if replay.place(pod) is not None)
    return 100 * placed / capacity
