"""`dragoon cdi`: what containers get of claims here, and trying it on an OCI runtime spec."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import click
import msgspec

from dragoon.app import cdi_view
from dragoon.app.cdi_view import FileState, Written
from dragoon.cli import exits, objects, settings
from dragoon.cli.calling import Family
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    form_option,
    print_data,
    print_next,
    print_note,
    print_table,
)
from dragoon.diagnose.runtime_config import container_problem, read_config
from dragoon.errors import CdiError
from dragoon.reading import text_in

_HEADER: Final = ("CLAIM", "DEVICE", "EDIT", "WHAT")


@click.group(cls=Family)
def command() -> None:
    """Show what containers get, and try it on an OCI runtime spec."""


@command.command()
@click.argument("claim", required=False, metavar="[claim/NAME]")
@objects.local_namespace_option
@click.option("--all", "everything", is_flag=True, help="Every claim of this node.")
@settings.setting_options("driver_name", "kubelet_root", "state_dir", "cdi_root")
@form_option
def show(
    claim: str | None,
    namespace: str | None,
    *,
    everything: bool,
    form: Form,
    **options: Any,
) -> int:
    """Show the CDI spec of a claim: what its containers get.

    claim/NAME: its name alone, namespace/name and its UID are taken too. A file that is missing or
    was changed is told: containers that start would get what is in the file. Needs neither the API
    server nor a plugin that runs.
    """
    if everything is (claim is not None):
        raise click.UsageError("give either claim/NAME or --all")
    found = cdi_view.specs(settings.load(options), objects.local_claim(claim, namespace))
    if form == "table":
        print_table(_HEADER, [row for one in found.written for row in _rows(one)])
    else:
        items = [_object(one) for one in found.written]
        print_data(
            {"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "CdiSpecList", "items": items}, form
        )
    wrong = [
        f"{one.file} is {one.state}: the plugin writes it again within a second"
        for one in found.written
        if one.state is not FileState.WHOLE
    ]
    for problem in (*found.problems, *wrong):
        print_note(problem)
    if wrong or found.problems:
        print_next("dragoon check --category kubelet,state")
    return exits.FINDINGS if wrong or found.problems else exits.FINE


@command.command()
@click.argument("config", metavar="OCI.json", type=click.File("rb"))
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="ID",
    help="What the container asks for, `<kind>=<name>`; may be given again.",
)
@click.option(
    "--spec",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A CDI spec, in place of those in cdiRoot; may be given again. Without --device, all of its devices.",
)
@settings.setting_options("cdi_root")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["json", "yaml"]),
    default="json",
    show_default=True,
    help="How to print.",
)
def inject(
    config: BinaryIO,
    devices: tuple[str, ...],
    files: tuple[Path, ...],
    *,
    form: Literal["json", "yaml"],
    **options: Any,
) -> int:
    """Print a container's OCI runtime spec as it is after the injection; nothing is changed.

    OCI.json: the config.json of a container bundle, - for stdin. What is refused here a container
    runtime refuses, too: the pod then shows `unresolvable CDI devices`.
    """
    if not devices and not files:
        raise click.UsageError("give --device, --spec or both")
    folder = Path(settings.load(options).cdi_root)
    before = cdi_view.read_config(text_in(config, "OCI runtime spec"))
    try:
        found = cdi_view.try_injection(files or cdi_view.spec_files(folder), devices, before)
    except CdiError as error:
        click.echo(f"the container would not start: {error}", err=True)
        print_next("dragoon check --category runtime,state")
        return exits.FINDINGS
    for skipped in found.skipped:
        print_note(f"no CDI spec, left out: {skipped}")
    print_data(found.config, form)
    return exits.FINE


@command.command()
@click.argument("config", metavar="CONFIG", type=click.File("rb"))
@click.option(
    "--environment",
    type=click.File("rb"),
    help="What `env` prints in a container that should have a GPU (kubectl exec POD -- env).",
)
@settings.setting_options("cdi_root")
@form_option
def runtime(config: BinaryIO, *, environment: BinaryIO | None, form: Form, **options: Any) -> int:
    """Tell whether the node's container runtime applies our CDI specs.

    CONFIG: what `containerd config dump` or `crio status config` prints, - for stdin. A runtime
    that has CDI off, or reads other folders, starts containers without a GPU and without an error.
    """
    cdi_root = settings.load(options).cdi_root
    found = read_config(text_in(config, "the runtime's configuration", errors="replace"), cdi_root)
    problems = [*found.problems]
    if environment is not None:
        told = text_in(environment, "--environment", errors="replace")
        problems += filter(None, [container_problem(told)])
    switch = {True: "on", False: "off", None: "unknown"}[found.on]
    if form == "table":
        print_table(
            ("RUNTIME", "CDI", "FOLDERS"), [(found.runtime, switch, ", ".join(found.folders))]
        )
    else:
        print_data(
            {
                "apiVersion": "gpu.dragoon.dev/v1alpha1",
                "kind": "RuntimeCdi",
                "runtime": found.runtime,
                "cdi": switch,
                "folders": list(found.folders),
                "problems": problems,
            },
            form,
        )
    for problem in problems:
        print_note(problem)
    if problems:
        print_next("dragoon check --category runtime")
    return exits.FINDINGS if problems else exits.FINE


def _rows(one: Written) -> Iterator[Row]:
    claim = f"{one.claim.namespace}/{one.claim.name}"
    for device, kind, what in cdi_view.edits_of(one):
        yield (claim, device, kind, Cell(what))


def _object(one: Written) -> dict[str, Any]:
    return {
        "claim": {
            "namespace": one.claim.namespace,
            "name": one.claim.name,
            "uid": one.claim.uid,
        },
        "file": str(one.file),
        "state": one.state.value,
        "ids": list(one.ids),
        "spec": msgspec.to_builtins(one.spec),
    }
