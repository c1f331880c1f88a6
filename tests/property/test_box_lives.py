"""Random lives of whole boxes: what our allocator gives, prepare makes, and nothing overlaps or leaks.

Each step goes the way of a real one: the real adapter under pynvml over the simulated library, the
slices that the publisher builds of it, our allocator on them with the verifier beside it, and the
engine of prepare with crashes, restarts and power cuts. What must hold is checked against the state
of the simulated hardware, which knows nothing of slices, counters and journals.

By hand, for as long as it may take: `DRAGOON_LIVES=50 pytest tests/property/test_box_lives.py`
multiplies the lives.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from dragoon.allocator import Allocated, allocate, verify
from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.errors import DeviceBusyError, DragoonError, HardwareError, StateError
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.partitioning import is_resetless
from dragoon.gpu.sim.profiles import find_machine
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.engine import Engine
from dragoon.prepare.port import PreparedDevice
from dragoon.publish.choosing import Wishes
from dragoon.publish.slices import render
from dragoon.publish.surveying import survey
from tests.property.node_life import PATHS, NodeLife, run_lives, timeout
from tests.property.simulated_cards import every_card
from tests.unit.gpu.rig import Rig
from tests.unit.prepare.scene import DRIVER, NODE, Scene
from tests.unit.prepare.sharing import enforcement, install_library, pod_with_claims

Raw = dict[str, Any]

CARDS = 2
CLAIMS_AT_ONCE = 8
GIB = 1 << 30
RAW_NODE: Raw = {"metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}}}
ATTRIBUTE = f'device.attributes["{DRIVER}"]'
WISHES = Wishes(tuple(Form), frozenset({"all"}), NodeEnforcement.of([Tier.HAMI]))


@dataclass(frozen=True)
class Part:
    """What of a card a claim has: memory slices of it, or bytes, or (both empty) all of it."""

    slot: int
    slices: frozenset[int] = frozenset()
    memory: int = 0

    @property
    def is_whole(self) -> bool:
        return not self.slices and not self.memory


Parts = tuple[Part, ...]


def fit(parts: list[Part], card_memory: dict[int, int]) -> bool:
    """Whether so much can be of the cards at once."""
    for slot in {one.slot for one in parts}:
        here = [one for one in parts if one.slot == slot]
        slices = Counter(number for one in here for number in one.slices)
        forms = {(one.is_whole, bool(one.slices)) for one in here}
        if len(forms) > 1 or max(slices.values(), default=1) > 1:
            return False
        if sum(one.is_whole for one in here) > 1:
            return False
        if sum(one.memory for one in here) > card_memory[slot]:
            return False
    return True


def device_class(name: str, kind: str) -> Raw:
    expression = f'device.driver == "{DRIVER}" && {ATTRIBUTE}.type == "{kind}"'
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


CLASSES = [
    device_class("whole", "gpu"),
    device_class("shared", "shared"),
    device_class("mig", "mig"),
]


@st.composite
def wishes(draw: st.DrawFn, profiles: tuple[str, ...]) -> Raw:
    """One request, as users write them."""
    kind = draw(st.sampled_from(("whole", "shared", "shared", "mig", "mig", "mig")))
    wish: Raw = {"deviceClassName": kind, "allocationMode": "ExactCount"}
    if kind == "shared":
        wish["count"] = draw(st.sampled_from((1, 1, 2)))
        asked: Raw = {"memory": f"{draw(st.sampled_from((1, 4, 9, 20)))}Gi"}
        if draw(st.booleans()):
            asked["cores"] = draw(st.sampled_from(("10", "60")))
        wish["capacity"] = {"requests": asked}
    elif kind == "mig":
        profile = draw(st.sampled_from(profiles))
        wish["count"] = draw(st.sampled_from((1, 1, 1, 2, 3)))
        wish["selectors"] = [{"cel": {"expression": f'{ATTRIBUTE}.profile == "{profile}"'}}]
    else:
        wish["count"] = draw(st.integers(1, CARDS))
    return wish


class BoxLife(NodeLife[Parts]):
    """A machine with the first cards of one that we ship. modes: of Ampere's cards, MIG or not."""

    machine_name = ""
    effects_of_a_call = 45
    """A claim of three MIG devices has about 30."""

    def __init__(self) -> None:
        super().__init__(Scene())
        self.stack = ExitStack()
        self.gone: set[ClaimRef] = set()
        self.serial = 0

    @initialize(modes=st.lists(st.booleans(), min_size=CARDS, max_size=CARDS))
    def power_on(self, modes: list[bool]) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        whole = find_machine(self.machine_name)
        cards = tuple(replace(card, wires=()) for card in whole.cards[:CARDS])
        hardware = Hardware.installed(folder / "m.json", replace(whole, cards=cards), NODE)
        gpus = NvmlGpus(hardware.roots, stand_in=SimulatedLibrary(hardware))
        self.stack.callback(gpus.close)
        self.rig = Rig(gpus, hardware)
        self.modes = [
            mode and not is_resetless(card) for card, mode in zip(cards, modes, strict=True)
        ]
        for slot, mode in enumerate(self.modes):
            if mode:
                hardware.set_mig_mode(slot, enabled=True)
        self.scene.disk.cards.mig = every_card(self.rig)
        self.scene.enforcement = enforcement(Tier.HAMI)
        install_library(self.scene)
        self.look()
        self.slices = self.published()
        self.start()

    def start(self) -> None:
        self.effects = MemoryEffects(self.scene.disk)
        self.engine: Engine = self.scene.engine(self.effects, wait_s=0.0, forms=lambda: tuple(Form))
        self.run(self.engine.start())

    def look(self) -> None:
        """As the plugin looks at its cards, which get other minors and perhaps other modes."""
        self.scene.gpus.found = self.rig.look()
        self.slot_of = {
            str(card.address): slot for slot, card in enumerate(self.rig.state.machine.cards)
        }
        self.memory = {
            self.slot_of[str(gpu.address)]: gpu.memory_bytes or 0
            for gpu in self.scene.gpus.found.gpus
        }

    def published(self) -> list[Raw]:
        """The slices of this node now."""
        made = {
            held.device
            for entry in self.journal().held
            for held in entry.devices
            if held.mig and held.mig.made
        }
        inventory = self.rig.look()
        divisions, unread = survey(self.rig.gpus.mig, inventory).told_apart(made)
        assert not unread
        found = render(inventory, node=NODE, driver=DRIVER, wishes=WISHES, divisions=divisions)
        return [
            {**one, "metadata": {"name": f"{number:05x}-{NODE}"}}
            for number, one in enumerate(found)
        ]

    @precondition(lambda self: len(self.claims) < CLAIMS_AT_ONCE)
    @rule(data=st.data())
    def allocate(self, data: st.DataObject) -> None:
        """Some pods come, as long as there are not too many; most start at once."""
        profiles = tuple(one.name for one in self.rig.state.machine.cards[0].mig)
        for wish in data.draw(st.lists(wishes(profiles), min_size=1, max_size=3)):
            claim = self.give(wish)
            if claim is not None and data.draw(st.sampled_from((True, True, False))):
                self.try_prepare(claim, None)

    def give(self, wish: Raw) -> ClaimRef | None:
        """kube-scheduler's part: our allocator; the verifier, and the plain model, say the same."""
        self.serial += 1
        name = f"p{self.serial}"
        raw = {
            "metadata": {"name": f"{name}-a", "namespace": "team-a", "uid": name},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": wish}]}},
        }
        world: Raw = {
            "classes": CLASSES,
            "slices": self.slices,
            "allocated_claims": self.run(self.scene.api.list(CLAIMS)).items,
            "node": RAW_NODE,
        }
        found = allocate([raw], **world)
        if not isinstance(found, Allocated):
            return None
        assert verify([raw], found.allocations, **world) == []
        results = found.allocations[0]["devices"]["results"]
        _, refs = self.run(pod_with_claims(self.scene, name, {"a": results}))
        claim = refs["a"]
        self.claims[claim] = tuple(map(self.part, results))
        there = [part for one in self.claims.keys() - self.gone for part in self.claims[one]]
        assert fit(there, self.memory), "allocated beyond what there is"
        return claim

    def part(self, result: Raw) -> Part:
        """What a result means, by what the slices say of its device and what the card is."""
        (device,) = [
            device
            for one in self.slices
            for device in one["spec"].get("devices") or ()
            if device["name"] == result["device"]
        ]
        attributes = device["attributes"]
        slot = self.slot_of[attributes["resource.kubernetes.io/pciBusID"]["string"]]
        if attributes["type"]["string"] == "mig":
            start = int(device["name"].rpartition("-")[2])
            (profile,) = [
                one
                for one in self.rig.state.machine.cards[slot].mig
                if one.name == attributes["profile"]["string"]
            ]
            return Part(slot, slices=frozenset(range(start, start + profile.size)))
        if attributes["type"]["string"] == "shared":
            return Part(slot, memory=amount(result["consumedCapacity"]["memory"]))
        return Part(slot)

    def can_be_prepared(self) -> list[ClaimRef]:
        return sorted(self.claims.keys() - self.gone, key=str)

    def check_answer(self, claim: ClaimRef, answer: tuple[PreparedDevice, ...]) -> None:
        assert len(answer) == len(self.claims[claim])

    def check_refusal(self, claim: ClaimRef, error: DragoonError, *, broken: bool) -> None:
        """What is allocated can be made, but for what a force-deleted pod still has."""
        if isinstance(error, DeviceBusyError):
            others = {entry.claim for entry in self.journal().entries} & self.gone
            held = [part for one in others for part in self.claims[one]]
            assert not fit([*held, *self.claims[claim]], self.memory), str(error)
        else:
            assert isinstance(error, StateError | HardwareError), repr(error)
            assert broken, str(error)

    @rule(data=st.data())
    @precondition(lambda self: self.claims)
    def end(self, data: st.DataObject) -> None:
        """A pod ends in good order: unprepared, deallocated, deleted."""
        claim = data.draw(st.sampled_from(sorted(self.claims, key=str)))
        self.in_use.discard(claim)
        self.run(self.engine.unprepare(claim))
        self.delete(claim)
        del self.claims[claim]
        self.gone.discard(claim)

    @rule(data=st.data())
    @precondition(lambda self: self.can_be_prepared())
    def force_delete(self, data: st.DataObject) -> None:
        """A pod is deleted by force: others get its devices while its containers still live."""
        claim = data.draw(st.sampled_from(self.can_be_prepared()))
        self.delete(claim)
        self.gone.add(claim)

    def delete(self, claim: ClaimRef) -> None:
        if claim not in self.gone:
            self.run(self.scene.api.delete(CLAIMS, claim.name, namespace=claim.namespace))

    @rule()
    def reconcile(self) -> None:
        """The sweep of each minute."""
        self.run(self.engine.reconcile())
        kept = {entry.claim for entry in self.journal().entries}
        assert self.in_use <= kept, "released under a running container"

    @rule()
    def publish_again(self) -> None:
        """What we make of the cards ourselves changes nothing of what we publish."""
        assert self.published() == self.slices

    def check_boot(self) -> None:
        assert not any(card.instances for card in self.rig.state.cards)
        self.look()

    @invariant()
    def instances_lie_where_the_card_lets_them_and_are_somebody_s(self) -> None:
        if not hasattr(self, "rig"):
            return
        state = self.rig.state
        held = {
            (held.address, held.mig.profile, held.mig.start)
            for entry in self.held()
            for held in entry.devices
            if held.mig is not None
        }
        for machine_card, card in zip(state.machine.cards, state.cards, strict=True):
            profiles = {one.identity: one for one in machine_card.mig}
            taken: set[int] = set()
            for one in card.instances:
                profile = profiles[one.profile]
                slices = set(range(one.start, one.start + one.size))
                assert card.mig_enabled
                assert one.placement in profile.placements
                assert not taken & slices, "two instances overlap"
                taken |= slices
                assert (str(machine_card.address), profile.name, one.start) in held, "a leak"

    @invariant()
    def containers_have_what_their_claims_say_and_nobody_else_has(self) -> None:
        if not hasattr(self, "rig"):
            return
        given: list[Part] = []
        for claim in self.in_use:
            mine = list(self.really_has(claim))
            assert Counter(mine) == Counter(self.together(claim)), claim
            given += mine
        assert fit(given, self.memory), "more was given than there is"

    def together(self, claim: ClaimRef) -> Iterator[Part]:
        """The parts of a claim as its one container sees them: shares of one card are one."""
        for part in self.claims[claim]:
            if not part.memory:
                yield part
        for slot in {part.slot for part in self.claims[claim] if part.memory}:
            memory = sum(one.memory for one in self.claims[claim] if one.slot == slot)
            yield Part(slot, memory=memory)

    def really_has(self, claim: ClaimRef) -> Iterator[Part]:
        """What the container of a claim has, by its variables and its region, and the hardware."""
        state = self.rig.state
        got = self.inside(claim)
        regions = [
            Path(one.host_path) / "usage" for one in got.mounts if "regions" in one.host_path
        ]
        files = self.scene.disk.files()
        limits = {
            u.uuid: u.limit for file in regions if file in files for u in region.read(files[file])
        }
        for entry in got.env:
            name, _, uuid = entry.partition("=")
            if not name.startswith("DRAGOON_"):
                continue
            for slot, card in enumerate(state.cards):
                for one in card.instances:
                    if uuid in {ci.uuid for ci in one.compute}:
                        yield Part(slot, slices=frozenset(range(one.start, one.start + one.size)))
                if uuid == card.uuid:
                    assert not card.mig_enabled, "a whole card in MIG mode"
                    yield Part(slot, memory=limits.get(uuid, 0))

    def teardown(self) -> None:
        with self.stack:
            if hasattr(self, "engine"):
                # A power cut may bring back the entry of a claim that has ended: the sweep takes it.
                self.run(self.engine.reconcile())
            super().teardown()

    def check_end(self) -> None:
        state = self.rig.state
        for slot, card in enumerate(state.cards):
            assert (card.instances, card.caps) == ((), ())
            assert card.mig_enabled is self.modes[slot], "a mode that nobody needs any more"
        assert MemoryEffects(self.scene.disk).names(PATHS.region_folder) == ()


def amount(text: str) -> int:
    """Bytes of a whole number of Gi, or of bytes."""
    return int(text.removesuffix("Gi")) * GIB if text.endswith("Gi") else int(text)


LIVES = 15 * int(os.environ.get("DRAGOON_LIVES", "1"))
STEPS = 60


@timeout
@pytest.mark.parametrize("machine", ["dgx-a100-40gb", "dgx-h100", "a30-2way", "rtx-pro-6000-2way"])
def test_no_life_of_a_box_overlaps_misplaces_or_leaks(machine: str) -> None:
    life = type("OneBoxLife", (BoxLife,), {"machine_name": machine})
    run_lives(life, lives=LIVES, steps=STEPS)
