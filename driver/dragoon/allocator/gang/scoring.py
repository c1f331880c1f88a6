"""How good a placement is, and in which part of the cluster it lies."""

from collections.abc import Sequence
from typing import Any

from dragoon.allocator.constraints import attribute_of
from dragoon.allocator.gang.model import Score
from dragoon.allocator.gang.preference import LINKS, link_of
from dragoon.allocator.gang.realising import Pick
from dragoon.allocator.gang.terrain import Bin
from dragoon.allocator.model import Facts
from dragoon.api.gang import Level, Topology


def score(picks: Sequence[Pick], topology: Topology) -> Score:
    """The score of what is placed now; members that were placed before do not count."""
    bins = {id(pick.bin): pick.bin for pick in picks}.values()
    return Score(
        spread=tuple(max(0, len(values(picks, one)) - 1) for one in topology.preferred),
        nodes=len(bins),
        domains=len({link for pick in picks for link in _links(pick)}),
        broken=sum(map(_broken, bins)),
    )


def values(picks: Sequence[Pick], level: Level) -> set[Any]:
    """The values of a level that nodes or devices have; None for a node without the label."""
    if level.node_label:
        return {pick.bin.node.labels.get(level.node_label) for pick in picks}
    found = (attribute_of(facts, level.attribute) for pick in picks for facts in _facts(pick))
    return {value[1] for value in found if value and value[0]}


def _facts(pick: Pick) -> set[Facts]:
    return {one.candidate.device.facts for chosen in pick.solution for one in chosen}


def _links(pick: Pick) -> set[Any]:
    return {
        (name, value)
        for facts in _facts(pick)
        for name in LINKS
        if (value := link_of(facts, name)) is not None
    }


def _broken(one: Bin) -> int:
    """Groups of devices of which nothing was in use before."""
    before, after = one.seats.seat(()), one.seats.seat(one.load)
    if before is None or after is None or before.usage is after.usage:
        return 0
    cards = one.seats.offers.cards
    return len(cards.whole_groups(before.usage)) - len(cards.whole_groups(after.usage))
