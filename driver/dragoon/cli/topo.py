"""`dragoon topo`: who is connected to whom, and what that means for claims."""

import asyncio
from typing import Any, Final

import click

from dragoon.app import hardware
from dragoon.app.patience import in_time
from dragoon.cli import settings
from dragoon.cli.devices import report
from dragoon.cli.durations import timeout_option
from dragoon.cli.output import Cell, Form, Tone, form_option, print_data, print_table
from dragoon.gpu import topology
from dragoon.gpu.model import Fabric, Inventory, PciAddress
from dragoon.gpu.naming import whole_name

_SELF: Final = "X"
_UNKNOWN: Final = "?"
_LEGEND: Final = (
    ("X", "itself"),
    ("NV#", "# NVLinks that are up"),
    ("PIX", "one PCIe switch"),
    ("PXB", "several PCIe switches"),
    ("PHB", "one PCIe root complex"),
    ("NODE", "one NUMA node"),
    ("SYS", "across NUMA nodes"),
    ("?", "not told by the system"),
)

Groups = list[list[str]]


@click.command()
@settings.setting_options(*hardware.SETTINGS)
@timeout_option
@form_option
def command(form: Form, timeout: float, **options: Any) -> int:
    """Show how the GPUs of this node are connected."""
    config = settings.load(options)
    inventory = asyncio.run(in_time(lambda: hardware.look_once(config), timeout))
    found = describe(inventory)
    if form == "table":
        _print(found)
    else:
        print_data(found, form)
    return report(inventory)


def describe(inventory: Inventory) -> dict[str, Any]:
    """The topology as plain data; devices under the names they are published with."""
    gpus = inventory.gpus
    return {
        "apiVersion": "gpu.dragoon.dev/v1alpha1",
        "kind": "Topology",
        "devices": [
            {"name": whole_name(gpu.address), "fabric": _fabric(gpu.fabric)} for gpu in gpus
        ],
        "relations": [
            [_SELF if a is b else topology.relation(a, b, gpus) or _UNKNOWN for b in gpus]
            for a in gpus
        ],
        "nvlinkDomains": [_names(group) for group in topology.nvlink_domains(gpus)],
        "pcieSwitches": [_names(group) for group in topology.pcie_switch_groups(gpus)],
        "numaNodes": {
            str(node): _names(group) for node, group in topology.numa_groups(gpus).items()
        },
    }


def _fabric(fabric: Fabric) -> dict[str, Any]:
    known = {
        "state": fabric.state.value,
        "clusterUUID": fabric.cluster_uuid,
        "clique": fabric.clique_id,
        "reason": fabric.reason or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _names(group: tuple[PciAddress, ...]) -> list[str]:
    return [whole_name(address) for address in group]


def _print(found: dict[str, Any]) -> None:
    names = [device["name"] for device in found["devices"]]
    columns = [str(position) for position in range(len(names))]
    print_table(
        ("-", "GPU", *columns),
        [
            (column, name, *(Cell(text, _tone(text)) for text in line))
            for column, name, line in zip(columns, names, found["relations"], strict=True)
        ],
    )
    click.echo()
    for mark, meaning in _LEGEND:
        click.echo(f"{mark:<5} {meaning}")
    numbers = dict(zip(names, columns, strict=True))
    click.echo()
    _print_groups("NVLink domains", found["nvlinkDomains"], numbers)
    _print_groups("PCIe switches", found["pcieSwitches"], numbers)
    for node, group in found["numaNodes"].items():
        click.echo(f"NUMA node {node}: {_numbered(group, numbers)}")
    for state in dict.fromkeys(_fabric_text(device["fabric"]) for device in found["devices"]):
        members = [d["name"] for d in found["devices"] if _fabric_text(d["fabric"]) == state]
        click.echo(f"Fabric {state}: {_numbered(members, numbers)}")


def _print_groups(label: str, groups: Groups, numbers: dict[str, str]) -> None:
    shown = ["(" + _numbered(group, numbers) + ")" for group in groups]
    click.echo(f"{label}: {' '.join(shown) or 'none'}")


def _numbered(group: list[str], numbers: dict[str, str]) -> str:
    return ", ".join(numbers[name] for name in group)


def _fabric_text(fabric: dict[str, Any]) -> str:
    clique = f"clique {fabric['clusterUUID']}.{fabric['clique']}" if "clusterUUID" in fabric else ""
    reason = f"({fabric['reason']})" if "reason" in fabric else ""
    return " ".join(part for part in (fabric["state"], clique, reason) if part)


def _tone(text: str) -> Tone:
    return "good" if text.startswith("NV") else "faint" if text == _SELF else "plain"
