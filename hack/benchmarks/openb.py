"""The open GPU traces of Alibaba's clusters (2023), as FGD was measured with (USENIX ATC '23).

The published protocol: all pods of a list in random order, then pods of the list drawn at random
until all together ask for 130 % of the cluster's GPUs; a list that asks for more loses pods at
random. Nodes are in random order, too. Nobody leaves, and a pod for which there is no room is gone.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

CARD: Final = 1000
"""A whole card, in the thousandths in which the lists count."""
LISTS: Final = {"default": 95.4, "multigpu50": 97.2, "gpushare100": 86.9, "gpuspec33": 94.6}
"""The lists, and how much of the GPUs FGD allocates: mean of ten seeds, in per cent."""
_NODES: Final = "openb_node_list_gpu_node.csv"
_ARRIVING: Final = 130
"""What all pods ask for, in per cent of the cluster's GPUs."""
_MEBI: Final = 2**20


class TraceError(Exception):
    """The traces are not there, or are not what they are said to be."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node as bought. cpu: in thousandths of a core, memory: in bytes, cards: how many."""

    cpu: int
    memory: int
    cards: int
    model: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod. milli: of each of its cards, in thousandths. models: allowed ones, none for any."""

    cpu: int
    memory: int
    cards: int
    milli: int
    models: tuple[str, ...]

    @property
    def size(self) -> int:
        """What it asks of all GPUs, in thousandths of one."""
        return self.cards * self.milli


def boxes(folder: Path) -> list[Box]:
    """The nodes. Raises TraceError."""
    return [
        Box(int(row["cpu_milli"]), int(row["memory_mib"]) * _MEBI, int(row["gpu"]), row["model"])
        for row in _rows(folder / _NODES)
    ]


def pods(folder: Path, name: str) -> list[Pod]:
    """The pods of a list. Raises TraceError."""
    return [
        Pod(
            int(row["cpu_milli"]),
            int(row["memory_mib"]) * _MEBI,
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        )
        for row in _rows(folder / f"openb_pod_list_{name}.csv")
    ]


def arrivals(known: Sequence[Pod], capacity: int, random: Random) -> list[Pod]:
    """The pods in the order in which they come. capacity: of all GPUs, in thousandths of one."""
    coming = list(known)
    random.shuffle(coming)
    wanted = capacity * _ARRIVING // 100
    asked = sum(one.size for one in coming)
    while asked > wanted:
        asked -= coming.pop(random.randrange(len(coming))).size
    while True:
        more = random.choice(known)
        if asked + more.size > wanted:
            return coming
        asked += more.size
        coming.append(more)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise TraceError(
            f"{path} cannot be read ({error.strerror}); the traces are in data/openb of the shared "
            "folder and in github.com/alibaba/clusterdata, cluster-trace-gpu-v2023: name the folder "
            "with --traces or DRAGOON_TRACES"
        ) from error
