"""Forms from the settings and the cards to slices: C56, switching without harm."""

import asyncio
import threading
from dataclasses import replace

from dragoon.api import names
from dragoon.api.enforcement import NodeEnforcement
from dragoon.api.forms import Form
from dragoon.gpu.mig import MigCard
from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import PciAddress, Placement
from dragoon.kube.port import PODS
from dragoon.publish.blaming import Blame
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import Taint
from dragoon.publish.holding import Prepared
from tests.scenario.publish.bench import until
from tests.scenario.publish.formbed import (
    ALL,
    HAMI,
    MIG,
    WHOLE,
    Node,
    all_stand,
    free,
    gone,
    has,
    is_there,
    quiet_rounds,
)
from tests.unit.publish.nodes import address

NEVER = 3600.0
"""An interval between two looks that no test waits for."""


async def test_c56_all_forms_stand_in_a_complete_and_valid_pool(node: Node) -> None:
    async with node.offering() as (made, publisher):
        slices = await node.bench.slices()
        assert [sorted(set(s["spec"]) & {"devices", "sharedCounters"}) for s in slices] == [
            ["sharedCounters"],
            ["devices"],
        ]
        assert len(await node.devices()) == publisher.state.devices == 2 * 16
        assert made.wanted.source == "settings"
        assert made.problems == ()
        before = len(node.bench.calls())
        await quiet_rounds(node)
        assert len(node.bench.calls()) == before


async def test_a_named_profile_that_no_card_offers_is_told_and_costs_no_device(node: Node) -> None:
    wishes = replace(ALL, profiles=frozenset(("1g.99gb", "1g.10gib")))
    async with node.offering(wishes) as (made, _):
        assert len(await node.devices()) == 2 * 16
        malformed, missing = made.problems
        assert malformed.startswith("migProfiles: MIG profile: found '1g.10gib', allowed: names")
        assert missing.startswith("migProfiles: 1g.99gb: no card of this node offers it; there are")


async def test_shares_wait_until_a_way_to_enforce_them_was_found(node: Node) -> None:
    async with node.offering(enforcement=NodeEnforcement()) as (made, _):
        assert f"{WHOLE}-shared" not in await node.devices()
        assert made.problems == (), "nobody knows yet that there is one"
        made.enforce(HAMI)
        await until(lambda: has(node, f"{WHOLE}-shared"))


async def test_a_restarted_process_leaves_the_shares_alone_until_it_has_probed(node: Node) -> None:
    async with node.offering():
        shares = {name for name in await node.devices() if name.endswith("-shared")}
    before = await node.bench.slices()
    async with node.offering(enforcement=NodeEnforcement(), published=False) as (made, own):
        await quiet_rounds(node)
        assert await node.bench.slices() == before
        made.enforce(HAMI)
        await own.published()
        assert shares <= await node.free()


async def test_the_label_of_the_node_changes_the_forms(node: Node) -> None:
    async with node.offering(Wishes(), interval=NEVER) as (made, _):
        assert set(await node.devices()) == {WHOLE, "gpu-0000-11-00-0"}
        await node.label("whole_mig")
        await until(lambda: has(node, MIG))
        assert made.wanted.source == "label"
        await node.label("nonsense")
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert any("nonsense" in problem for problem in made.problems)


async def test_a_device_that_is_prepared_stays_tainted_until_it_is_not(node: Node) -> None:
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    async with node.offering() as (made, _):
        await node.label("whole")
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
        found = await node.devices()
        assert [t["key"] for t in found[MIG]["taints"]] == [names.TAINT_FORM_WITHDRAWN]
        taken = found[WHOLE]["consumesCounters"][0]["counters"]
        assert set(found[MIG]["consumesCounters"][0]["counters"]) <= set(taken)
        assert list(made.leaving) == [MIG]
        node.prepared = Prepared()
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert "consumesCounters" not in (await node.devices())[WHOLE]
        assert not made.leaving


async def test_a_device_that_is_allocated_and_not_yet_prepared_stays_too(node: Node) -> None:
    await node.pod_with(MIG)
    async with node.offering():
        await node.label("whole")
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
        await node.bench.api.delete(PODS, "p", namespace="default")
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0"}))


async def test_whatever_is_withdrawn_has_its_taint_for_a_while(node: Node) -> None:
    async with node.offering(settle=3600):
        everything = set(await node.devices())
        await node.label("whole")
        await until(lambda: free(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert set(await node.devices()) == everything
        await node.label(None)
        await until(lambda: free(node, everything))


async def test_nothing_leaves_while_nobody_can_say_who_holds_it(node: Node) -> None:
    async with node.offering():
        everything = set(await node.devices())
        node.prepared = None
        await node.label("whole")
        await until(lambda: free(node, {WHOLE, "gpu-0000-11-00-0"}))
        await quiet_rounds(node)
        assert set(await node.devices()) == everything


async def test_a_restart_with_other_forms_withdraws_as_gently(node: Node) -> None:
    async with node.offering():
        pass
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    async with node.offering(Wishes()):
        await until(lambda: is_there(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
        assert await node.free() == {WHOLE, "gpu-0000-11-00-0"}


async def test_c21_our_own_instances_change_nothing_and_foreign_ones_the_card(node: Node) -> None:
    node.cards.set_mode(address(0), enabled=True)
    async with node.offering(Wishes((Form.WHOLE, Form.MIG))):
        before = await node.devices()
        node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
        node.cards.create(address(0), "3g.40gb", Placement(4, 4))
        await quiet_rounds(node)
        assert await node.devices() == before
        node.prepared = Prepared()
        await until(lambda: gone(node, WHOLE))
        found = await node.devices()
        assert found[MIG]["attributes"]["uuid"]["string"].startswith("MIG-")
        assert "consumesCounters" not in found[MIG]
        assert "gpu-0000-11-00-0" in found


async def test_a_card_that_hangs_while_it_is_asked_holds_up_no_taint(node: Node) -> None:
    hanging = Hanging(node.cards.cards)
    node.cards = hanging
    async with node.offering(patience=0.05) as (offering, _):
        # On a busy machine a card that is well can be late, too.
        await until(lambda: all_stand(node))
        before = await node.devices()
        hanging.hangs = True
        assert await asyncio.to_thread(hanging.asked.wait, 60)
        offering.blame({address(0): [Blame(Taint(names.TAINT_XID, "79"))]})

        async def tainted() -> bool:
            return not any(name.startswith(WHOLE) for name in await node.free())

        await until(tainted)
        assert set(await node.devices()) == set(before), "the card that hangs is as it was"
        hanging.go.set()


class Hanging(MemoryMigCards):
    """The second card does not answer while it hangs, before it is let go."""

    def __init__(self, cards: dict[PciAddress, MemoryCard]) -> None:
        super().__init__(cards)
        self.hangs = False
        self.go, self.asked = threading.Event(), threading.Event()

    def card(self, address_: PciAddress) -> MigCard | None:
        if self.hangs and address_ == address(1):
            self.asked.set()
            assert self.go.wait(60)
        return super().card(address_)
