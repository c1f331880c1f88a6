"""`dragoon lint`: what is wrong with manifests, and what to write instead."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from dragoon.cli import cluster_source, exits, manifest_source
from dragoon.cli.given import PATH, driver_name_option
from dragoon.cli.output import Form, form_option, print_data, print_next
from dragoon.diagnose import saving
from dragoon.diagnose.codes import API_VERSION
from dragoon.diagnose.linting import Finding, Severity, lint

_COLOURS: Final = {"error": "red", "warning": "yellow", "info": "blue"}


@click.command()
@manifest_source.manifest_options
@click.option(
    "--snapshot",
    type=PATH,
    help="A saved cluster, to check against its devices, classes and claims too.",
)
@driver_name_option
@form_option
def command(
    files: tuple[Path, ...],
    namespace: str,
    snapshot: Path | None,
    driver_name: str,
    form: Form,
) -> int:
    """Check manifests of claims, pods and classes, without a cluster.

    Ends with 1 where there is an error in one, with 2 where there is no object in any.
    """
    known = None if snapshot is None else saving.load(snapshot)
    manifests = manifest_source.read(files, namespace)
    findings = lint(manifests, known, driver=driver_name)
    if form == "table":
        for one in findings:
            _print(one)
    else:
        print_data(finding_list(findings), form)
    counts = Counter(one.severity for one in findings)
    click.echo(_summary(len(manifests.items), counts), err=True)
    after = "dragoon lint" if counts["error"] else "dragoon simulate"
    print_next(cluster_source.looking_at(after, snapshot, files[0]))
    return exits.FINDINGS if counts["error"] else exits.FINE


def finding_list(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """The findings as plain data."""
    return {
        "apiVersion": API_VERSION,
        "kind": "FindingList",
        "items": [one.data() for one in findings],
    }


def _print(one: Finding) -> None:
    place = " ".join(filter(None, (one.object, one.path)))
    severity = click.style(one.severity, fg=_COLOURS[one.severity])
    click.echo(": ".join(filter(None, (str(one.origin), f"{severity} {one.code}", place))))
    click.echo(f"  found:   {one.found}")
    if one.instead:
        click.echo(f"  instead: {one.instead}")
    click.echo(f"  see:     {one.anchor}")


def _summary(objects: int, counts: Mapping[Severity, int]) -> str:
    told = ", ".join(f"{counts[name]} {name}{'s' if counts[name] != 1 else ''}" for name in counts)
    return f"{objects} object{'s' if objects != 1 else ''}: {told or 'nothing found'}"
