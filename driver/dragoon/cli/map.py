"""`dragoon map`: the GPUs of a cluster on one page, who holds them, which gangs wait and why."""

from pathlib import Path
from typing import Any, Final, Literal

import click

from dragoon.cli import cluster_source, exits, settings
from dragoon.cli.durations import cluster_timeout_option
from dragoon.cli.given import TEXT, driver_name_option
from dragoon.cli.output import print_data
from dragoon.diagnose.mapping import as_data, draw, page
from dragoon.diagnose.snapshot import ClusterSnapshot

_NODE: Final = "simulated"


@click.command()
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["html", "json", "yaml"]),
    default="html",
    show_default=True,
    help="What to print: a page for a browser, or its data.",
)
@driver_name_option
@click.option(
    "--label",
    "labels",
    type=TEXT,
    multiple=True,
    metavar="KEY",
    help="A node label to group by, such as that of racks; may be given again.",
)
@click.option(
    "--simulate",
    type=TEXT,
    metavar="MACHINE",
    help="Draw one node with this simulated machine, without a cluster.",
)
@cluster_source.source_options
@cluster_timeout_option
def command(
    form: Literal["html", "json", "yaml"],
    driver_name: str,
    labels: tuple[str, ...],
    simulate: str | None,
    timeout: float,
    **source: Path | None,
) -> int:
    """Draw the GPUs of the cluster: who holds what, and which gangs wait and why.

    Prints one HTML page that needs nothing else: dragoon map > map.html
    """
    snapshot = (
        _simulated(simulate, driver_name)
        if simulate
        else cluster_source.look(**source, seconds=timeout)
    )
    found = draw(snapshot, driver=driver_name, labels=labels)
    if form == "html":
        click.echo(page(found), nl=False)
    else:
        print_data(as_data(found), form)
    return exits.FINE


def _simulated(machine: str, driver: str) -> ClusterSnapshot:
    from dragoon.app import status_view  # noqa: PLC0415 - NVML's simulation, only where it is drawn

    given: dict[str, Any] = {"file": None, "simulate": machine, "driver_name": driver}
    found = status_view.published(settings.load(given), _NODE)
    return ClusterSnapshot.of(found, source=f"simulated {machine}")
