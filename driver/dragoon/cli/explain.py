"""`dragoon explain` (alias `why`): why a claim, a pod or a gang has its devices, or waits."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from dragoon.api.visible import one_line
from dragoon.cli import cluster_source, exits, objects
from dragoon.cli.answers import print_gang, print_placement, print_remedies, print_section
from dragoon.cli.durations import cluster_timeout_option
from dragoon.cli.output import Form, form_option, print_data, print_next
from dragoon.diagnose import answers
from dragoon.diagnose.explaining import (
    Explained,
    Given,
    explain_claim,
    explain_gang,
    explain_pod,
)

_KINDS: Final = {
    objects.CLAIM: explain_claim,
    objects.POD: explain_pod,
    objects.GANG: explain_gang,
}
_STATES: Final = {
    "allocated": "has its devices",
    "place": "would be placed",
    "wait": "waits",
    "stranded": "nobody gives it devices",
    "never": "does not fit, even if nothing else ran",
    "unknown": "not known",
}

_AFTER: Final = {
    "WAIT001": "kubectl get deviceclasses",
    "WAIT013": "kubectl get resourceclaims,resourceclaimtemplates",
    "WAIT015": "dragoon check --category api",
}


@click.command()
@click.argument("what", metavar="claim/NAME|pod/NAME|gang/NAME")
@objects.namespace_option
@cluster_source.source_options
@cluster_timeout_option
@form_option
def command(
    what: str,
    namespace: str | None,
    form: Form,
    timeout: float,
    **source: Path | None,
) -> int:
    """Say why a claim, a pod or a gang has its devices, or why it waits and what would help."""
    one = objects.named(what, *_KINDS)
    space = objects.namespace_of(namespace, source["kubeconfig"], source["snapshot"])
    found = _KINDS[one.kind](cluster_source.look(**source, seconds=timeout), space, one.name)
    if form == "table":
        _print(found)
    else:
        print_data(answers.explained(found), form)
    after = _next(found, one, space)
    print_next(*(cluster_source.looking_at(text, source["snapshot"]) for text in after))
    return exits.FINE if found.is_fine else exits.FINDINGS


def _print(found: Explained) -> None:
    tone = "green" if found.is_fine else "yellow"
    state = click.style(_STATES[found.state], fg=tone)
    click.echo(f"{found.kind} {found.name}: {state}")
    if found.state != "allocated" or found.kind == "Gang":
        click.echo(f"  {one_line(found.message)}")
    if found.cause is not None:
        click.echo(f"  {found.cause.code} {found.cause.title}")
        click.echo(f"    remedy: {found.cause.remedy}")
        click.echo(f"    see:    {found.cause.anchor}")
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


def _next(found: Explained, about: objects.Named, namespace: str) -> Iterable[str]:
    """What to look at after this answer."""
    if about.kind == objects.GANG:
        yield f"dragoon gangs show {about.name} -n {namespace}"
    elif found.state == "allocated":
        yield from (f"dragoon status node/{node}" for one in found.given for node in one.nodes)
    else:
        yield _AFTER.get(found.cause.code if found.cause else "", "dragoon status")
