"""How many fault points there are, against how many there were: a lost point is a lost test."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from chaoscampaign.board import Kind
from chaoscampaign.campaign import Call

FILE = Path(__file__).with_name("points.json")
Points = Mapping[tuple[str, Call, Kind], int]


def recorded(file: Path = FILE) -> dict[str, int]:
    """The numbers of the last record, by name."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, int])


def named(points: Points) -> dict[str, int]:
    """The numbers by names that people read."""
    return {
        f"{kind} {call} {counted.name.lower()}": number
        for (kind, call, counted), number in points.items()
    }


def record(points: Points, file: Path = FILE) -> None:
    """Makes these the numbers to compare with."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(named(points)), indent=2) + b"\n")


def fallen(points: Points, before: Mapping[str, int]) -> Iterator[str]:
    """The numbers that fell.

    Of driver calls there only have to be some: their number is a matter of speed, while an effect
    is something that must be undone.
    """
    now = named(points)
    for name, number in before.items():
        least = number if name.endswith(Kind.EFFECTS.name.lower()) else min(number, 1)
        if now.get(name, 0) < least:
            yield f"{name}: {now.get(name, 0)} fault points, recorded are {number} (--record)"
