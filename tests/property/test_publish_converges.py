"""The publisher among other writers and outages: it always gets there, and then it is silent.

Everything runs on one loop that only moves inside a rule, so interleavings are fine-grained: other
writers act in the middle of an attempt. All waits are zero: no test here depends on time.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.errors import (
    ApiConflictError,
    ApiError,
    ApiInvalidError,
    ApiUnavailableError,
)
from dragoon.gpu.model import Inventory
from dragoon.kube.port import NODES, SLICES, Object
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import Device
from dragoon.publish.devices import build
from dragoon.publish.offer import Offer
from dragoon.publish.pacing import Pace
from dragoon.publish.publisher import Publisher
from tests.property.publish_strategies import inventories
from tests.scenario.publish.bench import Bench
from tests.unit.publish.divided import divisible, division
from tests.unit.publish.nodes import DRIVER, NODE

AT_ONCE = Pace(
    wipe=0, edit=0, first_retry=0, last_retry=0, first_refused=0, last_refused=0, probe=0
)


def offered_forms() -> Offer:
    """Eight H100 in all forms: a slice of counters and three of devices."""
    cards = tuple(divisible(number) for number in range(8))
    divisions = {card.address: division(number=n) for n, card in enumerate(cards)}
    wishes = Wishes(tuple(Form), enforcement=NodeEnforcement.of([Tier.HAMI]))
    built = build(Inventory(gpus=cards), wishes=wishes, divisions=divisions)
    return Offer(built.devices, built.counter_sets, build(Inventory(gpus=cards)).devices)


MANY = tuple(Device(f"gpu-{n:03d}", {"type": {"string": "gpu"}}, {}) for n in range(130))
FORMS = offered_forms()
STEPS_TO_SETTLE = 3000
STEPS_OF_SILENCE = 300

Edit = Callable[[Object], None]


def _edits() -> st.SearchStrategy[Edit]:
    """What another writer may do to a slice."""
    numbers = st.sampled_from([0, 1, 2, 7, 2**63 - 1])
    return st.one_of(
        st.just(lambda s: s["spec"].update(devices=[])),
        st.just(lambda s: s["spec"].get("devices", []).reverse()),
        st.just(lambda s: [d.pop("taints", None) for d in s["spec"].get("devices", ())]),
        st.just(lambda s: [d.update(attributes={}) for d in s["spec"].get("devices", ())]),
        st.just(lambda s: s["metadata"].pop("ownerReferences", None)),
        st.just(lambda s: s["metadata"].update(labels={"somebody": "was-here"})),
        st.just(lambda s: s["metadata"].update(finalizers=["example.com/stay"])),
        st.just(lambda s: s["metadata"].update(finalizers=[])),
        numbers.map(lambda n: lambda s: s["spec"]["pool"].update(generation=n)),
        numbers.map(lambda n: lambda s: s["spec"]["pool"].update(resourceSliceCount=n)),
    )


class Converging(RuleBasedStateMachine):
    """A node, its publisher, and others who write slices."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.bench = self.run(_bench())
        self.wanted: tuple[Device, ...] = ()
        self.allowed = False
        self.publisher, self.task = self.run(self._start())

    def run(self, part: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(part)

    def somebody(self, part: Coroutine[Any, Any, Any]) -> None:
        """Another writer acts; the server may fail him too."""
        with contextlib.suppress(ApiError):
            self.run(part)

    async def _start(self) -> tuple[Publisher, asyncio.Task[None]]:
        publisher = self.bench.publisher(AT_ONCE)
        publisher.offer(FORMS if self.wanted == FORMS.devices else Offer(self.wanted))
        publisher.allow(self.allowed)
        return publisher, asyncio.create_task(publisher.run())

    async def _stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    @rule(found=inventories)
    def hardware_changes(self, found: Inventory) -> None:
        self.wanted = build(found).devices
        self.run(_call(self.publisher.offer, Offer(self.wanted)))

    @rule(count=st.integers(0, len(MANY)))
    def hardware_is_a_lot(self, count: int) -> None:
        self.wanted = MANY[:count]
        self.run(_call(self.publisher.offer, Offer(self.wanted)))

    @rule()
    def forms_are_offered(self) -> None:
        self.wanted = FORMS.devices
        self.run(_call(self.publisher.offer, FORMS))

    @rule(now=st.booleans())
    def kubelet_registers(self, now: bool) -> None:
        self.allowed = now
        self.run(_call(self.publisher.allow, now))

    @rule(count=st.integers(1, 40))
    def time_passes(self, count: int) -> None:
        self.run(_steps(count))

    @rule()
    def kubelet_wipes(self) -> None:
        self.somebody(self.bench.wipe())

    @rule(position=st.integers(0, 3), edit=_edits())
    def somebody_edits(self, position: int, edit: Edit) -> None:
        self.somebody(self._edit(position, edit))

    @rule(position=st.integers(0, 3))
    def somebody_deletes(self, position: int) -> None:
        self.somebody(self._delete(position))

    @rule(name=st.sampled_from(["00000-x", "00001-x", "by-hand", "fffff-x"]), devices=st.booleans())
    def somebody_creates(self, name: str, devices: bool) -> None:
        self.somebody(self._create(name, [device.raw() for device in self.wanted[:2] if devices]))

    @rule(
        error=st.sampled_from([ApiUnavailableError, ApiConflictError, ApiInvalidError, ApiError]),
        verb=st.sampled_from(["list", "get", "create", "replace", "delete", "watch"]),
        times=st.integers(1, 3),
        lost=st.booleans(),
    )
    def server_fails(self, error: type[ApiError], verb: str, times: int, lost: bool) -> None:
        order = self.bench.api.faults.lose_answer if lost else self.bench.api.faults.fail
        order(
            error=lambda: error("ordered"),
            verb=verb,
            times=times,
            when=lambda call: call.resource in {SLICES, NODES},
        )

    @rule()
    def watches_break(self) -> None:
        self.bench.api.faults.cut_watches()

    @rule()
    def history_is_forgotten(self) -> None:
        self.bench.api.compact()

    @rule()
    def plugin_is_killed_and_started(self) -> None:
        self.run(self._stop())
        self.publisher, self.task = self.run(self._start())

    @precondition(lambda self: self.allowed)
    @rule()
    def it_settles(self) -> None:
        self.run(self._settle())

    def teardown(self) -> None:
        try:
            self.allowed = True
            self.run(_call(self.publisher.allow, True))
            self.run(self._settle())
        finally:
            self.run(self._stop())
            self.runner.close()

    async def _settle(self) -> None:
        self.bench.api.faults.clear()
        await self._release()
        for _ in range(STEPS_TO_SETTLE):
            if self.publisher.state.current and await self.bench.shows(self.wanted):
                break
            await asyncio.sleep(0)
        assert await self.bench.shows(self.wanted), await self.bench.slices()
        before = len(self.bench.calls())
        await _steps(STEPS_OF_SILENCE)
        assert len(self.bench.calls()) == before
        assert await self.bench.shows(self.wanted)
        assert self.publisher.state.error is None

    async def _release(self) -> None:
        """Whoever put a finalizer on a slice takes it off some day."""
        for slice_ in await self.bench.slices():
            if slice_["metadata"].get("finalizers"):
                await self.bench.api.replace(
                    SLICES, {**slice_, "metadata": {**slice_["metadata"], "finalizers": []}}
                )

    async def _edit(self, position: int, edit: Edit) -> None:
        for slice_ in (await self.bench.slices())[position : position + 1]:
            edit(slice_)
            await self.bench.api.replace(SLICES, slice_)

    async def _delete(self, position: int) -> None:
        for slice_ in (await self.bench.slices())[position : position + 1]:
            await self.bench.api.delete(SLICES, slice_["metadata"]["name"])

    async def _create(self, name: str, devices: list[Object]) -> None:
        spec = {
            "driver": DRIVER,
            "nodeName": NODE,
            "pool": {"name": f"{NODE}/gpu", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        }
        await self.bench.api.create(SLICES, {"metadata": {"name": name}, "spec": spec})


async def _bench() -> Bench:
    bench = Bench()
    await bench.node()
    return bench


async def _call(method: Callable[[Any], None], argument: Any) -> None:
    method(argument)


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


TestConverging = Converging.TestCase
TestConverging.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
