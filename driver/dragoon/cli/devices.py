"""`dragoon devices`: exactly the devices that this node would publish."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from dragoon.api.limits import is_subdomain
from dragoon.app import hardware, publishing
from dragoon.app.device_template import as_template
from dragoon.app.device_view import DeviceView, views
from dragoon.app.patience import in_time
from dragoon.cli import exits, objects, settings
from dragoon.cli.cluster_source import looking_at
from dragoon.cli.durations import timeout_option
from dragoon.cli.given import PATH
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    list_form_option,
    print_data,
    print_names,
    print_next,
    print_note,
    print_table,
)
from dragoon.diagnose import saving
from dragoon.diagnose.manifests import mapping
from dragoon.errors import InvalidInputError
from dragoon.gpu.model import Inventory
from dragoon.publish.choosing import choose, unmatched

HEADER: Final = (
    "NAME",
    "FORM",
    "PRODUCT",
    "MEMORY",
    "NVLINK DOMAIN",
    "NUMA",
    "PCIE ROOT",
    "TAINTS",
)
WIDE: Final = (*HEADER, "POOL", "UUID", "DRIVER", "WHY")

Object = Mapping[str, Any]


@click.command()
@click.argument("what", required=False, metavar="[node/NAME]")
@click.option(
    "--snapshot",
    type=PATH,
    help="Those that are published in this saved cluster, of all nodes or of one.",
)
@click.option(
    "--template",
    metavar="NODE",
    help="As a template for an autoscaler: what a node of this kind and name would publish.",
)
@settings.setting_options(
    *(*hardware.SETTINGS, "driver_name", "forms", "mig_profiles", "kubelet_root", "state_dir"),
    *("cgroup_root", "hami_library", "hami_sha256", "allow_unenforced_shares"),
)
@timeout_option
@list_form_option
def command(
    what: str | None,
    snapshot: Path | None,
    template: str | None,
    form: Form,
    timeout: float,
    **options: Any,
) -> int:
    """Show the devices that this node would publish.

    With the form shared it tries how shares can be enforced here, as the plugin does at its start.
    The node's label is not asked.
    """
    if template is not None and not is_subdomain(template):
        raise InvalidInputError(f"--template: found {template!r}, allowed is a node's name")
    config = settings.load(options)
    if snapshot is not None or what is not None:
        return _saved(snapshot, what, template, config.driver_name, form)
    seen = asyncio.run(in_time(lambda: publishing.look_at_forms(config), timeout))
    found = seen.as_slices(hardware.node_name(config), config.driver_name)
    gpus = seen.inventory.gpus
    unpublished = {
        str(gpu.address): choose(gpu, seen.divisions.get(gpu.address), seen.wishes).problems
        for gpu in gpus
    }
    why = {
        str(gpu.address): "; ".join((*gpu.problems, *unpublished[str(gpu.address)])) for gpu in gpus
    }
    _print(found, template, form, why)
    for problem in unmatched(seen.divisions.values(), seen.wishes):
        print_note(problem)
    for address, problems in unpublished.items():
        for problem in problems:
            print_note(f"GPU {address}: {problem}")
    return report(seen.inventory)


def _print(
    found: Sequence[Object], template: str | None, form: Form, why: Mapping[str, str]
) -> None:
    """why: what the cards do not tell or publish, by PCI address."""
    if template is not None:
        found = as_template(found, template)
    if form == "table":
        print_table(HEADER, rows(found))
    elif form == "wide":
        print_table(WIDE, wide_rows(found, why))
    elif form == "name":
        print_names("device", (one.name for one in views(found)))
    else:
        print_data(slice_list(found), form)


def _saved(
    snapshot: Path | None, what: str | None, template: str | None, driver: str, form: Form
) -> int:
    """The devices in the slices of a saved cluster. Raises InvalidInputError."""
    if template is not None and what is None:
        raise InvalidInputError("--template: found no node, allowed is node/NAME as its model")
    node = "" if what is None else objects.named(what, objects.NODE).name
    if snapshot is None:
        raise InvalidInputError(
            f"found {what!r} without --snapshot, allowed is a node of a saved cluster",
            hint=f"for a live one: dragoon status node/{node}",
        )
    found = [
        one
        for one in saving.load(snapshot).slices
        if (spec := mapping(one.get("spec"))).get("driver") == driver
        and node in {"", spec.get("nodeName")}
    ]
    _print(found, template, form, {})
    if not found:
        click.echo(f"no slice of {driver}{f' on node {node}' if node else ''}", err=True)
    about = " ".join(filter(None, ("dragoon status", what)))
    print_next(looking_at(about, snapshot))
    return exits.FINE


def report(inventory: Inventory) -> int:
    """Says on stderr what is missing or wrong; answers the exit code that goes with it."""
    if not inventory.gpus and not inventory.lost:
        click.echo("no GPUs on this node", err=True)
    for gpu in inventory.gpus:
        for problem in gpu.problems:
            print_note(f"GPU {gpu.address}: {problem}")
    for lost in inventory.lost:
        click.echo(
            f"degraded: GPU {lost.address or 'at an unknown address'} is lost: {lost.reason}",
            err=True,
        )
    silent = any(gpu.problems for gpu in inventory.gpus)
    if silent or inventory.degraded or not inventory.gpus:
        print_next("dragoon check --category host")
    return exits.FINDINGS if inventory.degraded else exits.FINE


def slice_list(found: Iterable[Object]) -> dict[str, Any]:
    """The slices as the API would list them."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSliceList",
        "metadata": {},
        "items": list(found),
    }


def rows(found: Iterable[Object]) -> list[Row]:
    """One row for each device in the slices."""
    return [_row(device) for device in views(found)]


def wide_rows(found: Iterable[Object], why: Mapping[str, str]) -> list[Row]:
    """The same with everything else that fits into a line; why: as for printing."""
    return [
        (
            *_row(device),
            device.pool,
            device.uuid,
            device.driver_version,
            Cell(why.get(device.address, ""), "bad"),
        )
        for device in views(found)
    ]


def _row(device: DeviceView) -> Row:
    return (
        device.name,
        device.form,
        device.product,
        device.memory_text,
        device.nvlink_domain,
        device.numa_node,
        device.pcie_root,
        Cell(device.taints, "bad"),
    )
