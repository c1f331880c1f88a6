"""How placements, funnels and remedies are printed for people."""

from collections.abc import Iterable

import click

from dragoon.api.visible import one_line
from dragoon.diagnose.gangs import GangAnswer
from dragoon.diagnose.placing import Placement
from dragoon.diagnose.remedies import Remedies


def print_section(title: str, lines: Iterable[str]) -> None:
    """A title and indented lines, nothing where there is no line."""
    told = list(lines)
    if told:
        click.echo()
        click.secho(title, bold=True)
        for line in told:
            click.echo(f"  {one_line(line)}")


def print_placement(placement: Placement) -> None:
    """The funnel, and what was found on the other nodes."""
    print_section("why", placement.funnel())
    nodes = [f"{placement.looked} looked at, fits on {placement.fitting}"]
    nodes += [f"{count} more: {reason}" for reason, count in placement.others]
    nodes += [f"{count} not for this pod: {reason}" for reason, count in placement.refused]
    print_section("nodes", nodes)


def print_gang(found: GangAnswer) -> None:
    """Where the members of a gang go; or why it does not fit, and what would help."""
    members = found.plan.placements if found.plan else ()
    print_section("members", [f"{one.pod} on {one.node}" for one in members])
    print_section("why", found.reasons)
    print_section("what would help", [found.change] if found.change else [])
    print_section("write instead", found.instead.splitlines())
    print_section("notes", found.notes)


def print_remedies(found: Remedies) -> None:
    """What would help, the smallest change first; or that nothing does."""
    lines = [f"{number}. {one}" for number, one in enumerate(found.offered, 1)]
    print_section("what would help", lines or [found.summary()])
