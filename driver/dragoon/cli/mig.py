"""`dragoon mig`: MIG instances, profiles and placements of this node's cards."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import click

from dragoon.app import hardware, mig_view
from dragoon.app.mig_view import DividedCard
from dragoon.app.patience import in_time
from dragoon.cli import exits, settings
from dragoon.cli.durations import timeout_option
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    named_form_option,
    print_data,
    print_names,
    print_next,
    print_note,
    print_table,
)

_MIB_PER_GIB: Final = 1024

What = Literal["list", "profiles", "placements"]
Object = dict[str, Any]


@click.command()
@click.argument("what", type=click.Choice(["list", "profiles", "placements"]), default="list")
@settings.setting_options(*hardware.SETTINGS, "driver_name", "kubelet_root", "state_dir")
@timeout_option
@named_form_option
def command(what: What, form: Form, timeout: float, **options: Any) -> int:
    """Show how the GPUs of this node are divided by MIG.

    list: the instances that are there, and which claim has each; one that no claim has was made by
    somebody else. profiles: what each card offers. placements: every device that can be made of it,
    and what is in its way now.
    """
    config = settings.load(options)
    division = asyncio.run(in_time(lambda: mig_view.look(config), timeout))
    objects = [one for card in division.cards for one in _OBJECTS[what](card)]
    if form == "table":
        print_table(_HEADERS[what], [_row(one) for one in objects])
    elif form == "name":
        kind = "profile" if what == "profiles" else "device"
        print_names(kind, (one[kind] for one in objects))
    else:
        list_kind = {"list": "MigInstanceList", "profiles": "MigProfileList"}.get(what)
        print_data(
            {
                "apiVersion": "gpu.dragoon.dev/v1alpha1",
                "kind": list_kind or "MigPlacementList",
                "items": objects,
            },
            form,
        )
    if not division.cards and not division.problems:
        click.echo("no GPU of this node has MIG", err=True)
    for problem in division.problems:
        print_note(problem)
    if division.problems:
        print_next("dragoon check --category host")
    elif what == "list" and any(one["claim"] == mig_view.NOBODY for one in objects):
        print_next("dragoon check --category state")
    return exits.FINDINGS if division.problems else exits.FINE


def instances(card: DividedCard) -> Iterator[Object]:
    """What is there now."""
    for one in card.instances:
        yield {
            "gpu": str(card.card.address),
            "device": card.name(one.profile, one.placement),
            "profile": one.profile.name,
            "placement": str(one.placement),
            "uuid": one.uuid or "",
            "claim": card.owner(one),
        }


def profiles(card: DividedCard) -> Iterator[Object]:
    """What the card offers. Memory in MiB, None where the card does not say it."""
    for one in card.card.profiles:
        free = [place.start for place in one.placements if not card.takers(one, place)]
        yield {
            "gpu": str(card.card.address),
            "mode": "on" if card.card.mode.enabled else "off",
            "profile": one.name,
            "memoryMiB": one.memory_mib,
            "slices": one.slices,
            "instances": one.instances,
            "starts": list(one.starts),
            "free": free,
        }


def placements(card: DividedCard) -> Iterator[Object]:
    """Every device of the card, by profile and start."""
    for profile in card.card.profiles:
        for place in profile.placements:
            takers = card.takers(profile, place)
            yield {
                "gpu": str(card.card.address),
                "device": card.name(profile, place),
                "profile": profile.name,
                "placement": str(place),
                "takenBy": [
                    f"{one.profile.name} at {one.placement} ({card.owner(one)})" for one in takers
                ],
            }


_OBJECTS: Final[dict[What, Callable[[DividedCard], Iterator[Object]]]] = {
    "list": instances,
    "profiles": profiles,
    "placements": placements,
}
_HEADERS: Final[dict[What, tuple[str, ...]]] = {
    "list": ("GPU", "DEVICE", "PROFILE", "PLACEMENT", "UUID", "CLAIM"),
    "profiles": ("GPU", "MODE", "PROFILE", "MEMORY", "SLICES", "INSTANCES", "STARTS", "FREE"),
    "placements": ("GPU", "DEVICE", "PROFILE", "PLACEMENT", "TAKEN BY"),
}


def _row(one: Object) -> Row:
    return [_cell(name, value) for name, value in one.items()]


def _cell(name: str, value: Any) -> Cell:
    if name == "memoryMiB":
        return Cell("unknown" if value is None else f"{value / _MIB_PER_GIB:.1f} GiB")
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return Cell(text, "bad" if text == mig_view.NOBODY else "plain")
