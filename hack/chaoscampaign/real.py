"""The campaign on a real process: every point once, then the other faults in random order."""

import random
from collections.abc import Awaitable, Callable, Iterator
from itertools import product
from pathlib import Path

from chaoscampaign import deeds, outages, points
from chaoscampaign.board import Deed, Kind
from chaoscampaign.campaign import Call, Campaign, Say, Tally
from chaoscampaign.node import Node, NodeError
from chaoscampaign.points import Points
from chaoscampaign.workload import bystanders

_Step = Callable[[Campaign], Awaitable[None]]


class RealCampaign:
    """Breaks one node until so many kills and faults were done."""

    def __init__(self, root: Path, seed: int, tally: Tally, say: Say) -> None:
        self._node = Node(root)
        self._rng = random.Random(seed)  # noqa: S311 - the same faults again, not a secret
        self._campaign = Campaign(self._node, self._rng, tally, say)
        self._say = say
        self.points: Points = {}

    async def run(self, until: int) -> None:
        """Goes on until the tally says so much. A node that cannot be mended ends it."""
        try:
            await self._node.open()
            await self._count_points()
            await self._campaign.host(bystanders(self._node.hardware.read().machine.cards))
            for step in self._steps():
                if self._campaign.tally.done >= until:
                    break
                await step(self._campaign)
        except NodeError as error:
            self._campaign.blame([str(error)])
        finally:
            await self._node.close()

    async def _count_points(self) -> None:
        found = {}
        for name, wish in self._node.wishes.items():
            for (call, kind), number in (await deeds.measure(self._campaign, wish)).items():
                found[name, call, kind] = number
        self.points = found
        for name, number in points.named(found).items():
            self._say(f"fault points: {name}: {number}")

    def _steps(self) -> Iterator[_Step]:
        """Every point of every call first; then whatever chance says, without end."""
        places = [
            (name, call, point)
            for name, call in product(self._node.wishes, Call)
            for point in range(self.points[name, call, Kind.EFFECTS] + 1)
        ]
        self._rng.shuffle(places)
        for number, (name, call, point) in enumerate(places):
            yield self._kill(name, call, point)
            if number % 4 == 0:
                yield self._any()
        while True:
            yield self._any()

    def _kill(self, name: str, call: Call, point: int) -> _Step:
        deed = self._rng.choice((Deed.KILL, Deed.TEAR))
        return lambda campaign: deeds.kill_at(campaign, self._node.wishes[name], call, point, deed)

    def _any(self) -> _Step:
        name, call = self._rng.choice([*self._node.wishes]), self._rng.choice([*Call])
        wish = self._node.wishes[name]
        effect = self._rng.randrange(self.points[name, call, Kind.EFFECTS] + 1)
        asked = self._rng.randrange(self.points[name, call, Kind.DRIVER_CALLS] + 1)
        return self._rng.choice(
            (
                self._kill(name, call, effect),
                lambda c: deeds.killed_again_at(c, wish, call, effect),
                lambda c: deeds.power_cut_at(c, wish, call, effect),
                lambda c: deeds.fail_effect(c, wish, call, effect),
                lambda c: deeds.disk_stays_broken(c, wish, call, effect),
                lambda c: deeds.fail_driver(c, wish, call, asked),
                lambda c: deeds.hang_driver(c, wish, call, asked),
                lambda c: deeds.api_fails(c, wish, call),
                lambda c: deeds.api_away(c, wish, call),
                lambda c: deeds.journal_damaged(c, wish),
                lambda c: outages.crowded(c, outages.reboot),
                lambda c: outages.crowded(c, outages.watches_break),
                lambda c: outages.crowded(c, outages.kubelet_restarts),
                outages.slices_refused,
                lambda c: outages.crowded(c, outages.cdi_folder_emptied),
                outages.killed_under_load,
                outages.killed_under_load,
            )
        )
