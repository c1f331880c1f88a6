"""`dragoon explain` (alias `why`): why a claim, a pod or a gang has its devices, or waits."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from dragoon.cli import cluster_source, exits
from dragoon.cli.answers import print_gang, print_placement, print_remedies, print_section
from dragoon.cli.output import Form, form_option, print_data
from dragoon.diagnose import answers
from dragoon.diagnose.explaining import (
    Explained,
    Given,
    explain_claim,
    explain_gang,
    explain_pod,
)
from dragoon.errors import InvalidInputError

_KINDS: Final = {
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims"), explain_claim),
    **dict.fromkeys(("pod", "pods", "po"), explain_pod),
    **dict.fromkeys(("gang", "gangs"), explain_gang),
}
_STATES: Final = {
    "allocated": "has its devices",
    "place": "would be placed",
    "wait": "waits",
    "never": "does not fit, even if nothing else ran",
    "unknown": "not known",
}


@click.command()
@click.argument("what", metavar="claim/NAME|pod/NAME|gang/NAME")
@click.option("-n", "--namespace", default="default", show_default=True, help="Its namespace.")
@cluster_source.source_options
@form_option
def command(
    what: str,
    namespace: str,
    form: Form,
    **source: Path | None,
) -> int:
    """Say why a claim, a pod or a gang has its devices, or why it waits and what would help."""
    kind, slash, name = what.partition("/")
    explain = _KINDS.get(kind.lower())
    if explain is None or not slash or not name:
        raise InvalidInputError(f"found {what!r}, allowed is claim/NAME, pod/NAME or gang/NAME")
    found = explain(cluster_source.look(**source), namespace, name)
    if form == "table":
        _print(found)
    else:
        print_data(answers.explained(found), form)
    return exits.FINE if found.is_fine else exits.FINDINGS


def _print(found: Explained) -> None:
    tone = "green" if found.is_fine else "yellow"
    state = click.style(_STATES[found.state], fg=tone)
    click.echo(f"{found.kind} {found.name}: {state}")
    if found.state != "allocated" or found.kind == "Gang":
        click.echo(f"  {found.message}")
    for one in found.given:
        print_section(f"claim {one.claim} has", _given(one))
        print_section("why these", one.why)
    if found.gang is not None:
        print_gang(found.gang)
    if found.placement is not None:
        print_placement(found.placement)
    if found.remedies is not None:
        print_remedies(found.remedies)
    print_section(
        "checks",
        [
            f"{one.severity} {one.code} {one.object} {one.path}: {one.found}"
            + (f"; instead: {one.instead}" if one.instead else "")
            for one in found.findings
        ],
    )
    print_section("notes", found.notes)


def _given(one: Given) -> Iterable[str]:
    yield from map(str, one.devices)
    yield f"on node {', '.join(one.nodes)}" if one.nodes else "on any node"
    yield f"reserved for {', '.join(one.users)}" if one.users else "reserved for nobody"
