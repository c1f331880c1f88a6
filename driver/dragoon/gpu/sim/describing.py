"""An inventory -> the topology file of its machine: the inverse of `profiles`. Pure.

The file has every field that the simulated library needs to be the same machine, and no UUIDs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import yaml

from dragoon.gpu import topology
from dragoon.gpu.mig import MigInstance
from dragoon.gpu.model import (
    Fabric,
    FabricState,
    Gpu,
    Inventory,
    LinkRemote,
    MigProfile,
    PciAddress,
)
from dragoon.gpu.sim.schema import SCHEMA

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Extras:
    """What the inventory does not hold: MIG, GPU memory nodes, CPUs by NUMA node, symbols."""

    mig_profiles: Mapping[PciAddress, tuple[MigProfile, ...]]
    mig_instances: Mapping[PciAddress, tuple[MigInstance, ...]]
    memory_nodes: Mapping[PciAddress, int | None]
    node_cpus: Mapping[int, str | None]
    symbols: Mapping[str, bool]


def describe(name: str, inventory: Inventory, extras: Extras) -> str:
    """The text of the topology file; cards are numbered by PCI address."""
    gpus = inventory.gpus
    slots = {gpu.address: slot for slot, gpu in enumerate(gpus)}
    nvlink = _nvlink(gpus, slots)
    cuda = inventory.cuda_version
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "name": name,
        "count": len(gpus),
        "driverVersion": inventory.driver_version,
        "cudaVersion": f"{cuda[0]}.{cuda[1]}" if cuda else None,
        "gpus": [_gpu(slot, gpu, extras) for slot, gpu in enumerate(gpus)],
        "matrix": _matrix(gpus, nvlink),
        "nvlink": nvlink,
        "pcieSwitchGroups": [
            [slots[address] for address in group] for group in topology.pcie_switch_groups(gpus)
        ],
        "numaGroups": {
            node: [slots[address] for address in group]
            for node, group in topology.numa_groups(gpus).items()
        },
        "fabric": _fabric(gpus[0].fabric) if gpus else None,
        "mig": _mig(gpus, extras),
        "nvmlSymbols": {
            "present": [symbol for symbol, there in extras.symbols.items() if there],
            "absent": [symbol for symbol, there in extras.symbols.items() if not there],
        },
        "notes": _notes(inventory, extras),
    }
    return "".join(_lines(key, value) for key, value in found.items() if value is not None)


def _lines(key: str, value: Any) -> str:
    """One line per leaf of interest: lists of mappings and rows are spread, all else is inline."""
    if isinstance(value, list) and value and not isinstance(value[0], int):
        return f"{key}:\n" + "".join(f"  - {_inline(item)}\n" for item in value)
    if key == "mig":
        rows = "".join(f"    - {_inline(row)}\n" for row in value["profiles"])
        return f"mig:\n  axisWidth: {value['axisWidth']}\n  profiles:\n{rows}"
    return f"{key}: {_inline(value)}\n"


def _inline(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1 << 20)
    return text.removesuffix("...\n").strip()


def _gpu(slot: int, gpu: Gpu, extras: Extras) -> dict[str, Any]:
    capability = gpu.compute_capability
    node = gpu.numa_node
    fields = {
        "index": slot,
        "product": gpu.product or "unknown",
        "memoryMiB": None if gpu.memory_bytes is None else gpu.memory_bytes // _MIB,
        "numaNode": node,
        "cpus": None if node is None else extras.node_cpus.get(node),
        "gpuNumaId": extras.memory_nodes.get(gpu.address),
        "pci": str(gpu.address),
        "pciPath": "/".join(gpu.pci_path) or None,
        "minor": gpu.minor,
        "architecture": gpu.architecture,
        "brand": gpu.brand,
        "computeCapability": f"{capability[0]}.{capability[1]}" if capability else None,
        "migCapable": bool(extras.mig_profiles.get(gpu.address)),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _matrix(gpus: tuple[Gpu, ...], nvlink: Mapping[str, Any]) -> list[list[str]] | None:
    """None where sysfs tells too little, or the cards on switches have not all the same links."""
    rows = [["X" if a is b else topology.relation(a, b, gpus) for b in gpus] for a in gpus]
    known = [[cell for cell in row if cell is not None] for row in rows]
    linked = {cell for row in known for cell in row if cell.startswith("NV")}
    if known != rows or ("allPairsOf" in nvlink and linked - {f"NV{nvlink['linksPerGPU']}"}):
        return None
    return known


def _nvlink(gpus: tuple[Gpu, ...], slots: Mapping[PciAddress, int]) -> dict[str, Any]:
    """The links that work now; a link that is down is one that leads nowhere."""
    links = [link for gpu in gpus for link in gpu.links]
    if not links:
        return {"via": "none", "linksPerGPU": 0}
    found: dict[str, Any] = {
        "via": "direct",
        "linksPerGPU": max(len(gpu.links) for gpu in gpus),
    }
    to_switches = [link for link in links if link.remote is LinkRemote.SWITCH]
    if to_switches:
        outside = all(link.peer is None for link in to_switches)
        found["via"] = "nvswitch (rack)" if outside else "nvswitch"
        found["allPairsOf"] = sorted(slots[address] for address in topology.on_switches(gpus))
    else:
        found["pairs"] = [
            {"a": slots[a.address], "b": slots[b.address], "links": wires}
            for a, b in combinations(gpus, 2)
            if (wires := topology.links_between(a, b, gpus))
        ]
    found["groups"] = [[slots[a] for a in domain] for domain in topology.nvlink_domains(gpus)]
    for key, values in (
        ("version", {link.version for link in links}),
        ("mbPerSecond", {link.mb_per_second for link in links if link.active}),
    ):
        if len(values) == 1 and None not in values:
            found[key] = values.pop()
    return found


def _fabric(fabric: Fabric) -> dict[str, Any]:
    if fabric.state is FabricState.UNSUPPORTED:
        return {"state": "not supported"}
    failed = fabric.state is FabricState.FAILED
    return {
        "state": "Completed" if failed else fabric.state.value.title(),
        "status": "Failure" if failed else "Success",
        "cliqueId": fabric.clique_id,
        "clusterUUID": fabric.cluster_uuid,
    }


def _mig(gpus: tuple[Gpu, ...], extras: Extras) -> dict[str, Any] | None:
    listings = [extras.mig_profiles.get(gpu.address, ()) for gpu in gpus]
    profiles = next((listing for listing in listings if listing), ())
    if not profiles:
        return None
    return {
        "axisWidth": max(start + p.size for p in profiles for start in p.starts),
        "profiles": [
            {
                "name": p.name,
                "id": p.identity,
                "instances": p.instances,
                "memoryGiB": None if p.memory_mib is None else p.memory_mib / 1024,
                "sms": p.multiprocessors,
                "starts": list(p.starts),
                "size": p.size,
            }
            for p in profiles
        ],
    }


def _instance(instance: MigInstance) -> str:
    """Without UUIDs: the file is for others to see."""
    parts = len(instance.compute)
    return f"{instance.profile.name} at {instance.placement} with {parts} compute instances"


def _notes(inventory: Inventory, extras: Extras) -> list[str]:
    notes = [f"lost: {card.address or 'unknown address'}: {card.reason}" for card in inventory.lost]
    notes += [f"{gpu.address}: {problem}" for gpu in inventory.gpus for problem in gpu.problems]
    for gpu in inventory.gpus:
        down = [link.index for link in gpu.links if not link.active]
        if down:
            notes.append(f"{gpu.address}: NVLinks that are down: {down}")
        if gpu.fabric.reason:
            notes.append(f"{gpu.address}: fabric: {gpu.fabric.reason}")
        if gpu.mig is not None and gpu.mig.enabled:
            found = extras.mig_instances.get(gpu.address)
            seen = "cannot be read" if found is None else ", ".join(map(_instance, found))
            notes.append(f"{gpu.address}: in MIG mode, instances: {seen or 'none'}")
    if len({gpu.fabric for gpu in inventory.gpus}) > 1:
        notes.append("the fabric record is that of the first GPU; the others differ")
    if len({profiles for profiles in extras.mig_profiles.values() if profiles}) > 1:
        notes.append("the MIG profiles are those of the first card; others differ")
    return notes
