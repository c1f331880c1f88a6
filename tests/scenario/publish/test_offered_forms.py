"""Forms from the settings and the cards to slices: C56, switching without harm, old servers."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from dragoon.api import names
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.gpu.mig import MigCard
from dragoon.gpu.mig_memory import MemoryCard, MemoryMigCards
from dragoon.gpu.model import Inventory, PciAddress, Placement
from dragoon.kube.events import EventRecorder
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES, Object
from dragoon.publish.blaming import Blame
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import Taint
from dragoon.publish.holding import Prepared
from dragoon.publish.looking import Sources
from dragoon.publish.offering import Offering
from dragoon.publish.publisher import Publisher
from tests.scenario.publish.bench import Bench, running, until
from tests.unit.publish.divided import divisible, division
from tests.unit.publish.nodes import DRIVER, NODE, address

ALL = Wishes(tuple(Form))
HAMI = NodeEnforcement.of([Tier.HAMI])
WHOLE = "gpu-0000-10-00-0"
MIG = f"{WHOLE}-mig-3g40gb-4"
TWO = Inventory(gpus=(divisible(0), divisible(1)))
COUNTERS = ("spec", "devices", "*", "consumesCounters"), ("spec", "sharedCounters")
SHARES = (
    ("spec", "devices", "*", "allowMultipleAllocations"),
    ("spec", "devices", "*", "capacity", "memory", "requestPolicy"),
    ("spec", "devices", "*", "capacity", "cores", "requestPolicy"),
)

NEVER = 3600.0
"""An interval between two looks that no test waits for."""


class Node:
    """One node with two H100, whose journal and cards a test changes."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.prepared: Prepared | None = Prepared()
        self.cards = MemoryMigCards.of([division(number=n).card for n in range(2)])

    async def journal(self) -> Prepared | None:
        return self.prepared

    @contextlib.asynccontextmanager
    async def offering(
        self,
        wishes: Wishes = ALL,
        *,
        interval: float = 0.02,
        settle: float = 0.0,
        enforcement: NodeEnforcement = HAMI,
        published: bool = True,
        patience: float = 60.0,
    ) -> AsyncIterator[tuple[Offering, Publisher]]:
        """The node process, as soon as its devices stand where `published`."""
        own = self.bench.own_node()
        publisher = self.bench.publisher(node=own)
        recorder = EventRecorder(self.bench.api, DRIVER, NODE)
        made = Offering(
            self.bench.api,
            publisher,
            own,
            driver=DRIVER,
            recorder=recorder,
            wishes=wishes,
            sources=Sources(self.cards, self.journal, patience),
            interval=interval,
            settle=settle,
        )
        made.enforce(enforcement)
        made.show(TWO)
        publisher.allow(True)
        async with running(publisher, recorder, made, own):
            if published:
                await publisher.published()
            yield made, publisher

    async def label(self, forms: str | None) -> None:
        labels = {"metadata": {"labels": {names.LABEL_FORMS: forms}}}
        await self.bench.api.patch(NODES, NODE, labels)

    async def devices(self) -> dict[str, Object]:
        return {
            device["name"]: device
            for slice_ in await self.bench.slices()
            for device in slice_["spec"].get("devices", ())
        }

    async def free(self) -> set[str]:
        """The devices without a taint."""
        return {name for name, raw in (await self.devices()).items() if not raw.get("taints")}

    async def pod_with(self, device: str) -> None:
        """A pod on this node whose claim was given the device."""
        claim = {
            "apiVersion": CLAIMS.api_version,
            "kind": CLAIMS.kind,
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "x"}}]}},
        }
        made = await self.bench.api.create(CLAIMS, claim)
        result = {"request": "g", "driver": DRIVER, "pool": f"{NODE}/gpu", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
        await self.bench.api.replace(CLAIMS, {**made, "status": status}, subresource="status")
        spec = {
            "nodeName": NODE,
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
        await self.bench.api.create(PODS, {**pod, "spec": spec})


@pytest.fixture
async def node() -> Node:
    made = Node()
    await made.bench.node()
    return made


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
        await until(lambda: _has(node, f"{WHOLE}-shared"))


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
        await until(lambda: _has(node, MIG))
        assert made.wanted.source == "label"
        await node.label("nonsense")
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert any("nonsense" in problem for problem in made.problems)


async def test_a_device_that_is_prepared_stays_tainted_until_it_is_not(node: Node) -> None:
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    async with node.offering() as (made, _):
        await node.label("whole")
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
        found = await node.devices()
        assert [t["key"] for t in found[MIG]["taints"]] == [names.TAINT_FORM_WITHDRAWN]
        taken = found[WHOLE]["consumesCounters"][0]["counters"]
        assert set(found[MIG]["consumesCounters"][0]["counters"]) <= set(taken)
        assert list(made.leaving) == [MIG]
        node.prepared = Prepared()
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert "consumesCounters" not in (await node.devices())[WHOLE]
        assert not made.leaving


async def test_a_device_that_is_allocated_and_not_yet_prepared_stays_too(node: Node) -> None:
    await node.pod_with(MIG)
    async with node.offering():
        await node.label("whole")
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
        await node.bench.api.delete(PODS, "p", namespace="default")
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0"}))


async def test_whatever_is_withdrawn_has_its_taint_for_a_while(node: Node) -> None:
    async with node.offering(settle=3600):
        everything = set(await node.devices())
        await node.label("whole")
        await until(lambda: _free(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert set(await node.devices()) == everything
        await node.label(None)
        await until(lambda: _free(node, everything))


async def test_nothing_leaves_while_nobody_can_say_who_holds_it(node: Node) -> None:
    async with node.offering():
        everything = set(await node.devices())
        node.prepared = None
        await node.label("whole")
        await until(lambda: _free(node, {WHOLE, "gpu-0000-11-00-0"}))
        await quiet_rounds(node)
        assert set(await node.devices()) == everything


async def test_a_restart_with_other_forms_withdraws_as_gently(node: Node) -> None:
    async with node.offering():
        pass
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    async with node.offering(Wishes()):
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0", MIG}))
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
        await until(lambda: _gone(node, WHOLE))
        found = await node.devices()
        assert found[MIG]["attributes"]["uuid"]["string"].startswith("MIG-")
        assert "consumesCounters" not in found[MIG]
        assert "gpu-0000-11-00-0" in found


@pytest.mark.parametrize("dropped", [COUNTERS, SHARES], ids=["counters", "shares"])
async def test_a_server_that_drops_what_keeps_forms_apart_gets_whole_gpus(
    node: Node, dropped: tuple[tuple[str, ...], ...]
) -> None:
    for path in dropped:
        node.bench.api.faults.drop(SLICES, *path)
    async with node.offering() as (_, publisher):
        assert publisher.state.whole_only
        found = await node.devices()
        assert set(found) == {WHOLE, "gpu-0000-11-00-0"}
        assert all(set(raw) == {"name", "attributes", "capacity"} for raw in found.values())
        assert await ever_published(node) == {WHOLE, "gpu-0000-11-00-0"}
        node.bench.api.faults.clear()
        await until(lambda: _has(node, MIG))
        await until(lambda: not publisher.state.whole_only)


async def test_a_server_that_refuses_what_keeps_forms_apart_gets_whole_gpus(node: Node) -> None:
    node.bench.api.faults.drop(SLICES, "spec", "devices", "*", "allowMultipleAllocations")
    async with node.offering() as (_, publisher):
        assert publisher.state.whole_only
        assert set(await node.devices()) == {WHOLE, "gpu-0000-11-00-0"}


async def test_a_server_that_stops_keeping_counters_is_noticed_by_the_next_write(
    node: Node,
) -> None:
    async with node.offering() as (_, publisher):
        for path in COUNTERS:
            node.bench.api.faults.drop(SLICES, *path)
        await node.bench.wipe()
        await until(lambda: _is(node, {WHOLE, "gpu-0000-11-00-0"}))
        assert publisher.state.whole_only


async def test_without_counters_a_card_that_is_held_in_another_form_is_kept_back(
    node: Node,
) -> None:
    node.prepared = Prepared(frozenset({MIG}), made=frozenset({MIG}))
    for path in COUNTERS:
        node.bench.api.faults.drop(SLICES, *path)
    async with node.offering():
        assert await node.free() == {"gpu-0000-11-00-0"}
        assert set(await node.devices()) == {WHOLE, "gpu-0000-11-00-0"}


@pytest.mark.parametrize("version", ["v1.36.0", "v1.36.1", "v1.35.4"])
async def test_c56_an_old_kubernetes_gets_whole_gpus_only(node: Node, version: str) -> None:
    node.bench.api.git_version = version
    async with node.offering() as (made, publisher):
        found = await node.devices()
        assert set(found) == {WHOLE, "gpu-0000-11-00-0"}
        assert all(set(raw) == {"name", "attributes", "capacity"} for raw in found.values())
        assert made.wanted.source == "Kubernetes"
        assert "only whole GPUs" in made.problems[0]
        assert not publisher.state.whole_only


async def test_c56_an_upgrade_of_the_server_adds_forms_and_moves_no_name(node: Node) -> None:
    node.bench.api.git_version = "v1.35.4"
    async with node.offering():
        (before,) = await node.bench.slices()
        node.bench.api.git_version = "v1.37.2"
        await until(lambda: _has(node, MIG))
        after = await node.bench.slices()
        pools = [each["spec"]["pool"] for each in after]
        assert all(pool == pools[0] for pool in pools)
        assert pools[0]["generation"] > before["spec"]["pool"]["generation"]
        assert pools[0]["resourceSliceCount"] == len(after)
        assert not any(set(each["spec"]) >= {"devices", "sharedCounters"} for each in after)
        old = {raw["name"]: raw["attributes"] for raw in before["spec"]["devices"]}
        new = {name: raw["attributes"] for name, raw in (await node.devices()).items()}
        assert old.items() <= new.items()


async def test_a_kubernetes_that_is_too_old_gets_nothing_and_is_told_why(node: Node) -> None:
    node.bench.api.git_version = "v1.34.2"
    own = node.bench.own_node()
    publisher = node.bench.publisher(node=own)
    recorder = EventRecorder(node.bench.api, DRIVER, NODE)
    made = Offering(node.bench.api, publisher, own, driver=DRIVER, recorder=recorder, interval=0.02)
    publisher.allow(True)
    made.show(TWO)
    async with running(publisher, recorder, made):
        await until(lambda: any("older than 1.35" in problem for problem in made.problems))
        assert await node.bench.slices() == []
        node.bench.api.git_version = "v1.37.2"
        await until(lambda: _has(node, WHOLE))


async def ever_published(node: Node) -> set[str]:
    """The names in every slice that was ever stored."""
    found: set[str] = set()
    stream = node.bench.api.watch(SLICES, resource_version="1")
    end = int(node.bench.api.resource_version)
    async for event in stream:
        found |= {device["name"] for device in event.object["spec"].get("devices", ())}
        if int(event.object["metadata"]["resourceVersion"]) >= end:
            break
    await stream.aclose()
    return found


async def quiet_rounds(node: Node) -> None:
    """Waits for a few more looks of the offering."""
    looks = _looks(node)
    await until(lambda: _looks(node) >= looks + 4)


def _looks(node: Node) -> int:
    return sum(
        call.verb == "get" and call.resource == NODES for call in node.bench.api.faults.calls
    )


async def _has(node: Node, name: str) -> bool:
    return name in await node.devices()


async def _gone(node: Node, name: str) -> bool:
    return name not in await node.devices()


async def _is(node: Node, wanted: set[str]) -> bool:
    return set(await node.devices()) == wanted


async def _all_stand(node: Node) -> bool:
    return len(await node.devices()) == 2 * 16


async def _free(node: Node, wanted: set[str]) -> bool:
    return await node.free() == wanted


async def test_a_card_that_hangs_while_it_is_asked_holds_up_no_taint(node: Node) -> None:
    hanging = Hanging(node.cards.cards)
    node.cards = hanging
    async with node.offering(patience=0.05) as (offering, _):
        # On a busy machine a card that is well can be late, too.
        await until(lambda: _all_stand(node))
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
