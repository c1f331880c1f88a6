"""Machines by name: topology files that ship with Dragoon, or a file of the user's.

`machine_from` turns one topology file into a machine; every file in `machines/` is one that
`--simulate NAME` knows.
"""

import os
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TypeVar

from dragoon.errors import InvalidInputError
from dragoon.gpu.sim.catalogue import Product, product
from dragoon.gpu.sim.machine import Card, Machine, Wire
from dragoon.gpu.sim.reading import read_topology
from dragoon.gpu.sim.records import fabric_record, mig_profiles
from dragoon.gpu.sim.schema import FabricEntry, GpuEntry, NvlinkEntry, demand
from dragoon.gpu.sim.seating import Seat, seats
from dragoon.gpu.sim.wiring import wires
from dragoon.reading import text_of

_T = TypeVar("_T")
_DRIVER_VERSION = "580.95.05"
_CUDA_VERSION = "13.0"


def shipped() -> tuple[str, ...]:
    """The names that `--simulate` knows, sorted."""
    folder = resources.files(__package__) / "machines"
    return tuple(
        sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))
    )


def find_machine(choice: str) -> Machine:
    """The machine that a path to a topology file, or the name of a shipped one, means.

    Raises InvalidInputError when there is neither, or the file is wrong.
    """
    if choice in shipped():
        text = (resources.files(__package__) / "machines" / f"{choice}.yaml").read_text("utf-8")
        return machine_from(text, choice)
    if not os.path.isfile(choice):  # noqa: PTH113 - Path.is_file raises for some impossible names
        allowed = ", ".join(shipped())
        raise InvalidInputError(
            f"simulated machine: found {choice!r}, allowed: a topology file, or one of {allowed}"
        )
    return machine_from(text_of(Path(choice)), choice)


def machine_from(text: str, origin: str) -> Machine:
    """The machine that a topology file describes. Raises InvalidInputError, naming `origin`."""
    topology = read_topology(text, origin)
    where = seats(topology)
    addresses = [str(seat.address) for seat in where]
    demand(len(set(addresses)) == len(where), f"{origin}: gpus[].pci", addresses, "distinct ones")
    profiles = mig_profiles(topology.mig, origin) if topology.mig else ()
    fabric = fabric_record(topology.fabric or FabricEntry(), origin)
    linked = wires(topology, origin)
    major, minor = map(int, (topology.cuda_version or _CUDA_VERSION).split("."))
    version = topology.driver_version
    return Machine(
        name=topology.name,
        cards=tuple(
            replace(
                _card(entry, seat, topology.nvlink or NvlinkEntry(via="none"), links),
                mig=() if entry.mig_capable is False else profiles,
                fabric=fabric,
            )
            for entry, seat, links in zip(topology.gpus, where, linked, strict=True)
        ),
        driver_version=_DRIVER_VERSION if version is None else version,
        cuda_version=major * 1000 + minor * 10,
    )


def _card(entry: GpuEntry, seat: Seat, nvlink: NvlinkEntry, links: tuple[Wire, ...]) -> Card:
    facts = product(entry.product) or Product()
    version, speed = facts.nvlink
    return Card(
        product=entry.product,
        address=seat.address,
        bridges=seat.bridges,
        memory_mib=None if entry.memory_query else entry.memory_mib,
        numa_node=entry.numa_node,
        cpus=entry.cpus,
        gpu_memory_node=entry.gpu_numa_id,
        architecture=_first(entry.architecture, facts.architecture),
        brand=_first(entry.brand, facts.brand),
        compute_capability=_capability(entry) or facts.compute_capability,
        minor=_first(entry.minor, entry.index),
        link_version=_first(nvlink.version, version) if links else None,
        link_mb_per_second=_first(nvlink.mb_per_second, speed) if links else None,
        wires=links,
    )


def _first(said: _T | None, assumed: _T | None) -> _T | None:
    return assumed if said is None else said


def _capability(entry: GpuEntry) -> tuple[int, int] | None:
    if entry.compute_capability is None:
        return None
    major, minor = entry.compute_capability.split(".")
    return int(major), int(minor)
