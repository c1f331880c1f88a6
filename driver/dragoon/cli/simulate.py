"""`dragoon simulate`: what would be allocated if these files were applied."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from dragoon.api.visible import one_line
from dragoon.cli import cluster_source, exits, manifest_source
from dragoon.cli.answers import print_gang, print_placement, print_remedies, print_section
from dragoon.cli.durations import cluster_timeout_option
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    Tone,
    form_option,
    print_data,
    print_next,
    print_note,
    print_table,
)
from dragoon.diagnose import answers
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.simulating import Simulated, Simulation, simulate

_HEADER: Final = ("OBJECT", "ROLE", "VERDICT", "PLACED", "NODES")
_TONES: Final[dict[Verdict, Tone]] = {Verdict.PLACE: "good", Verdict.NEVER: "bad"}


@click.command()
@manifest_source.manifest_options
@cluster_source.source_options
@cluster_timeout_option
@form_option
def command(
    files: tuple[Path, ...],
    namespace: str,
    form: Form,
    timeout: float,
    **source: Path | None,
) -> int:
    """Say what would be allocated if these files were applied; nothing is written."""
    manifests = manifest_source.read(files, namespace)
    found = simulate(cluster_source.look(**source, seconds=timeout), manifests)
    if form == "table":
        _print(found)
    else:
        print_data(answers.simulated(found), form)
    if not found.is_whole:
        print_next(cluster_source.looking_at("dragoon lint", source["snapshot"], files[0]))
    elif found.is_fine:
        print_next(("kubectl", "apply", "-f", str(files[0])))
    else:
        print_next(cluster_source.looking_at("dragoon status", source["snapshot"]))
    return exits.FINE if found.is_fine else exits.FINDINGS


def _print(found: Simulation) -> None:
    print_table(_HEADER, [_row(group) for group in found.groups])
    told: set[str] = set()
    for group in found.groups:
        if group.verdict is not Verdict.PLACE and group.gang is not None:
            if group.gang.name not in told:
                click.echo()
                click.secho(f"gang {group.gang.name}: {group.verdict.value}", bold=True)
                click.echo(f"  {one_line(group.gang.message)}")
                print_gang(group.gang)
            told.add(group.gang.name)
            continue
        if group.verdict is Verdict.PLACE or group.placement is None:
            print_section(f"{_name(group)} gets", _devices(group))
            continue
        click.echo()
        click.secho(f"{_name(group)}: {group.verdict.value}", bold=True)
        click.echo(f"  {one_line(group.placement.message)}")
        print_placement(group.placement)
        if group.remedies is not None:
            print_remedies(group.remedies)
    for note in found.notes:
        print_note(note)


def _row(group: Simulated) -> Row:
    nodes = ", ".join(f"{node} ({count})" for node, count in group.nodes)
    verdict = Cell(group.verdict.value, _TONES.get(group.verdict, "plain"))
    return (
        group.object,
        group.role,
        verdict,
        f"{len(group.placed)} of {group.wanted}",
        nodes,
    )


def _devices(group: Simulated) -> Iterator[str]:
    for one in group.placed:
        for device in one.devices:
            yield f"{one.name} on {one.node}: {device}"


def _name(group: Simulated) -> str:
    return f"{group.object} {group.role}" if group.role else group.object
