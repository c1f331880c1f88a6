"""Cases C13, C19, C26, C53 and C56: what is published of a card in each form, and when."""

from dataclasses import replace
from typing import Any

import pytest

from dragoon.api import limits, names
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.gpu.model import Gpu, Inventory, LostGpu
from dragoon.publish.card import Division
from dragoon.publish.choosing import Wishes
from dragoon.publish.device import Taint
from dragoon.publish.devices import Devices, build
from dragoon.publish.offer import Offer
from dragoon.publish.slices import render
from tests.unit.publish.divided import GIB, OFF, ON, divisible, division, instance
from tests.unit.publish.nodes import DRIVER, NODE, address, attribute, gpu

Object = dict[str, Any]

HAMI = NodeEnforcement.of([Tier.HAMI, Tier.NONE])
EVERYTHING = Wishes(tuple(Form), enforcement=HAMI)
WHOLE = "gpu-0000-10-00-0"
SHARED = f"{WHOLE}-shared"


def wishes(*forms: Form, tiers: tuple[Tier, ...] = (Tier.HAMI,), profiles: str = "") -> Wishes:
    named = frozenset(filter(None, profiles.split(",")))
    return Wishes(forms, named, NodeEnforcement.of(tiers))


def of(
    card: Gpu | None = None,
    known: Division | None = None,
    wanted: Wishes = EVERYTHING,
    **given: Any,
) -> Devices:
    """What is published of one card, by default an H100 with MIG."""
    card = card or divisible()
    divisions = {card.address: known} if known else {}
    return build(Inventory(gpus=(card,)), wishes=wanted, divisions=divisions, **given)


def raw(found: Devices) -> dict[str, Object]:
    return {device.name: device.raw() for device in found.devices}


def kinds(found: Devices) -> set[Any]:
    return {attribute(device, "type") for device in raw(found).values()}


def keys(device: Object) -> set[str]:
    return {taint["key"] for taint in device.get("taints", ())}


def test_an_h100_in_all_forms_comes_whole_first_then_shared_then_mig() -> None:
    found = of(known=division())
    listed = [device.name for device in found.devices]
    assert listed[:2] == [WHOLE, SHARED]
    assert len(listed) == 2 + 14
    assert listed[2:4] == [f"{WHOLE}-mig-1g10gb-6", f"{WHOLE}-mig-1g10gb-5"]
    (counters,) = found.counter_sets
    assert counters.name == WHOLE
    devices = raw(found)
    everything = [{"counterSet": WHOLE, "counters": counters.raw()["counters"]}]
    assert devices[WHOLE]["consumesCounters"] == everything
    assert devices[SHARED]["consumesCounters"] == everything
    assert found.problems == ()


def test_all_whole_gpus_of_a_node_come_before_any_other_form() -> None:
    cards = (divisible(0), divisible(1))
    divisions = {card.address: division(number=n) for n, card in enumerate(cards)}
    found = build(Inventory(gpus=cards), wishes=EVERYTHING, divisions=divisions)
    listed = [device.name for device in found.devices]
    second = "gpu-0000-11-00-0"
    assert listed[:4] == [WHOLE, second, SHARED, f"{second}-shared"]
    assert [name.startswith(WHOLE) for name in listed[4:]] == [True] * 14 + [False] * 14


def test_c26_a_shared_gpu_gives_all_its_memory_to_a_claim_that_does_not_say() -> None:
    device = raw(of(gpu(0)))[SHARED]
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"] == {
        "memory": {
            "value": "81559Mi",
            "requestPolicy": {
                "default": "81559Mi",
                "validRange": {"min": "512Mi", "step": "1Mi"},
            },
        },
        "cores": {
            "value": "100",
            "requestPolicy": {
                "default": "0",
                "validRange": {"min": "0", "max": "100", "step": "1"},
            },
        },
    }


def test_a_shared_gpu_says_how_its_shares_are_enforced() -> None:
    device = raw(of(gpu(0)))[SHARED]
    assert attribute(device, "type") == "shared"
    assert attribute(device, "uuid") == gpu(0).uuid
    assert attribute(device, "memoryEnforcement") == "intercepted"
    assert attribute(device, "computeEnforcement") == "best-effort"
    assert attribute(device, "enforcementTiers") == "hami,none"
    whole = raw(of(gpu(0)))[WHOLE]
    assert not {"memoryEnforcement", "enforcementTiers"} & set(whole["attributes"])


def test_what_a_node_does_not_enforce_cannot_be_asked_for() -> None:
    capped = raw(of(gpu(0), wanted=wishes(Form.SHARED, tiers=(Tier.CGROUP,))))[SHARED]
    assert set(capped["capacity"]) == {"memory"}
    assert attribute(capped, "computeEnforcement") == "none"
    sliced = raw(of(gpu(0), wanted=wishes(Form.SHARED, tiers=(Tier.NONE,))))[SHARED]
    assert set(sliced["capacity"]) == {"memory", "cores"}


@pytest.mark.parametrize(
    ("size", "tiers", "told"),
    [
        (80 * GIB, (), "no enforcement tier works on this node (cgroup: the driver is too old)"),
        (None, (Tier.HAMI,), "its size is not known"),
        (512 * 2**20, (Tier.HAMI,), "no more than the smallest share"),
    ],
)
def test_a_gpu_that_cannot_be_shared_says_why(
    size: int | None, tiers: tuple[Tier, ...], told: str
) -> None:
    enforcement = NodeEnforcement.of(tiers, {Tier.CGROUP: "the driver is too old"})
    wanted = Wishes((Form.WHOLE, Form.SHARED), enforcement=enforcement)
    found = of(gpu(0, memory_bytes=size), wanted=wanted)
    assert list(raw(found)) == [WHOLE]
    assert told in found.problems[0]
    assert found.counter_sets == ()


def test_a_gpu_of_unknown_size_can_be_shared_where_nothing_is_enforced() -> None:
    found = of(gpu(0, memory_bytes=None), wanted=wishes(Form.SHARED, tiers=(Tier.NONE,)))
    assert set(raw(found)[SHARED]["capacity"]) == {"cores"}


def test_an_odd_size_is_shared_out_in_whole_steps() -> None:
    device = raw(of(gpu(0, memory_bytes=80 * GIB + 5), wanted=wishes(Form.SHARED)))[SHARED]
    assert device["capacity"]["memory"]["value"] == "80Gi"


def test_one_form_alone_has_no_counters() -> None:
    for form in (Form.WHOLE, Form.SHARED):
        found = of(known=division(), wanted=wishes(form))
        assert len(found.devices) == 1
        assert "consumesCounters" not in found.devices[0].raw()
        assert found.counter_sets == ()


def test_a_mig_device_says_its_profile_and_parent() -> None:
    device = raw(of(known=division()))[f"{WHOLE}-mig-3g40gb-4"]
    assert attribute(device, "type") == "mig"
    assert attribute(device, "profile") == "3g.40gb"
    assert attribute(device, "parentUUID") == gpu(0).uuid
    assert attribute(device, "uuid") is None
    assert attribute(device, names.PCI_BUS_ID) == "0000:10:00.0"
    assert device["capacity"] == {"memory": {"value": "40448Mi"}}
    assert "allowMultipleAllocations" not in device


def test_a_profile_of_unknown_size_has_no_capacity() -> None:
    found = of(known=division("hgx-b200-8gpu"))
    assert "capacity" not in raw(found)[f"{WHOLE}-mig-3g90gb-0"]


@pytest.mark.parametrize(
    ("named", "count"), [("", 14), ("1g.20gb", 18), ("1g.10gb+me", 21), ("all", 25), ("2g.5gb", 14)]
)
def test_profiles_beside_the_main_ones_are_published_by_name(named: str, count: int) -> None:
    found = of(known=division(), wanted=wishes(Form.MIG, profiles=named))
    assert len(found.devices) == count
    if "+" in named:
        assert f"{WHOLE}-mig-1g10gb-with-me-0" in raw(found)


def test_c13_a_card_without_mig_is_plain_beside_one_with_it() -> None:
    cards = (divisible(0), gpu(1, memory_bytes=15360 * 2**20))
    found = build(
        Inventory(gpus=cards),
        wishes=wishes(Form.WHOLE, Form.MIG),
        divisions={address(0): division("a30-2way")},
    )
    assert [one.name for one in found.counter_sets] == [WHOLE]
    plain = raw(found)["gpu-0000-11-00-0"]
    assert set(plain) == {"name", "attributes", "capacity"}
    assert len(found.devices) == 2 + 7
    assert found.problems == ()


def test_c13_a_node_without_mig_is_the_same_with_the_switch_on() -> None:
    cards = (gpu(0), gpu(1))
    assert of(gpu(0), wanted=wishes(Form.WHOLE, Form.MIG)) == of(gpu(0), wanted=Wishes())
    with_switch = render(
        Inventory(gpus=cards), node=NODE, driver=DRIVER, wishes=wishes(Form.WHOLE, Form.MIG)
    )
    assert with_switch == render(Inventory(gpus=cards), node=NODE, driver=DRIVER)


@pytest.mark.parametrize(("mode", "expected"), [(OFF, {"gpu", "shared"}), (ON, {"mig"})])
def test_an_ampere_card_is_published_as_its_mode_is(mode: Any, expected: set[str]) -> None:
    known = division("dgx-a100-40gb", mode=mode, resetless=False)
    found = of(divisible(mode=mode), known)
    assert kinds(found) == expected
    assert "needs a reset" in found.problems[0]


def test_a_hopper_card_is_published_the_same_in_both_modes() -> None:
    on = of(divisible(mode=ON), division(mode=ON))
    assert on.devices == of(known=division()).devices


def test_mig_mode_that_no_form_of_the_node_allows_is_a_taint() -> None:
    for wanted in (Wishes(), wishes(Form.WHOLE, Form.SHARED)):
        found = of(divisible(mode=ON), None, wanted)
        assert [keys(device) for device in raw(found).values()] == [{names.TAINT_MIG_MODE}]
        assert "does not list the form mig" in found.problems[0]


def test_an_ampere_card_of_which_only_mig_is_wanted_says_why_there_is_none() -> None:
    known = division("dgx-a100-40gb", resetless=False)
    found = of(divisible(), known, wishes(Form.MIG))
    assert {name: keys(device) for name, device in raw(found).items()} == {
        WHOLE: {names.TAINT_MIG_MODE}
    }
    assert "needs a reset" in found.problems[0]


def test_a_card_whose_mig_state_cannot_be_read_is_kept_back() -> None:
    found = of(divisible(), None)
    assert keys(raw(found)[WHOLE]) == {names.TAINT_MIG_MODE}
    assert list(raw(found)) == [WHOLE]


def test_c21_instances_of_an_administrator_are_published_as_found() -> None:
    foreign = (
        instance("dgx-h100", "3g.40gb", 4),
        instance("dgx-h100", "1g.10gb", 0, whole=False),
    )
    found = of(divisible(mode=ON), division(mode=ON, foreign=foreign))
    devices = raw(found)
    assert WHOLE not in devices
    assert SHARED not in devices
    there = devices[f"{WHOLE}-mig-3g40gb-4"]
    assert attribute(there, "uuid") == "MIG-0-3g.40gb-4"
    assert "consumesCounters" not in there
    assert f"{WHOLE}-mig-1g10gb-0" not in devices
    made = {attribute(d, "profile") for d in devices.values() if "consumesCounters" in d}
    assert made == {"1g.10gb", "2g.20gb"}
    (counters,) = found.counter_sets
    assert set(counters.amounts) == {"memory", "slice-1", "slice-2", "slice-3"}
    assert "2 MIG instances of somebody else" in found.problems[0]


def test_an_instance_on_a_card_that_offered_nothing_when_it_was_asked_costs_nobody() -> None:
    """Somebody turned MIG on and made it between the two questions."""
    foreign = (instance("dgx-h100", "3g.40gb", 4),)
    known = division(foreign=foreign)
    known = replace(known, card=replace(known.card, profiles=(), resetless=False))
    devices = raw(of(divisible(), known))
    assert set(devices) == {WHOLE, f"{WHOLE}-shared"}


def test_a_form_that_leaves_stays_with_a_taint_and_its_counters() -> None:
    before = of(known=division())
    held = f"{WHOLE}-mig-3g40gb-4"
    found = of(known=division(), wanted=Wishes(), last_seen=raw(before), kept=[held])
    devices = raw(found)
    assert list(devices) == [WHOLE, held]
    assert keys(devices[WHOLE]) == set()
    assert keys(devices[held]) == {names.TAINT_FORM_WITHDRAWN}
    (counters,) = found.counter_sets
    assert devices[WHOLE]["consumesCounters"][0]["counters"] == counters.raw()["counters"]
    assert devices[held]["consumesCounters"][0]["counterSet"] == counters.name


def test_a_whole_gpu_that_leaves_keeps_its_mig_devices_away() -> None:
    known = division("dgx-a100-40gb", mode=ON, resetless=False)
    before = of(gpu(0), wanted=Wishes())
    found = of(divisible(mode=ON), known, last_seen=raw(before), kept=[WHOLE])
    assert keys(raw(found)[WHOLE]) == {names.TAINT_FORM_WITHDRAWN}
    (counters,) = found.counter_sets
    assert raw(found)[WHOLE]["consumesCounters"][0]["counters"] == counters.raw()["counters"]


def test_c20_an_instance_of_an_administrator_that_is_gone_stays_while_it_must() -> None:
    foreign = (instance("dgx-h100", "3g.40gb", 4),)
    before = of(divisible(mode=ON), division(mode=ON, foreign=foreign))
    there = f"{WHOLE}-mig-3g40gb-4"
    after = of(divisible(), None, Wishes(), last_seen=raw(before), kept=[there])
    device = raw(after)[there]
    assert keys(device) == {names.TAINT_FORM_WITHDRAWN}
    assert device["attributes"] == raw(before)[there]["attributes"]


def test_a_device_that_leaves_is_published_without_what_this_version_does_not_know() -> None:
    """Another version, or somebody who edited the slice, gave it an attribute of another kind."""
    before = raw(of(divisible(mode=ON), division(mode=ON)))
    held = f"{WHOLE}-mig-3g40gb-4"
    before[held]["attributes"]["neighbours"] = {"strings": ["a", "b"]}
    # MIG cannot be read now: the device is taken from what was published.
    found = of(divisible(mode=ON), None, last_seen=before, kept=[held])
    offered, findings = Offer(found.devices, found.counter_sets).usable()
    assert findings == ()
    (device,) = (one for one in offered.devices if one.name == held)
    assert "neighbours" not in device.attributes
    assert device.attributes["profile"] == before[held]["attributes"]["profile"]


def test_what_somebody_else_taints_is_tainted_in_every_form() -> None:
    taint = Taint(names.TAINT_OTHER_OWNER, "nvidia.com-gpu")
    found = of(known=division(), taints={address(0): (taint,)})
    assert {frozenset(keys(device)) for device in raw(found).values()} == {
        frozenset({names.TAINT_OTHER_OWNER})
    }


def test_a_lost_card_keeps_all_its_forms_with_a_taint() -> None:
    before = of(known=division())
    lost = LostGpu(address(0), "no answer", uuid=gpu(0).uuid)
    after = build(Inventory(lost=(lost,)), last_seen=raw(before), wishes=EVERYTHING)
    assert set(raw(after)) == set(raw(before))
    for name, device in raw(after).items():
        assert keys(device) == {names.TAINT_LOST}
        assert device["attributes"] == raw(before)[name]["attributes"]
    (counters,) = after.counter_sets
    wanted = sum(d.consumes.amounts["memory"] for d in before.devices if d.consumes)
    assert counters.amounts["memory"] == wanted


def test_another_card_in_the_slot_does_not_inherit_forms() -> None:
    before = of(known=division())
    lost = LostGpu(address(0), "no answer", uuid="GPU-another")
    after = build(Inventory(lost=(lost,)), last_seen=raw(before))
    assert [attribute(device, "type") for device in raw(after).values()] == ["lost"]


def test_c56_counters_and_devices_stand_in_slices_of_their_own() -> None:
    cards = tuple(divisible(n) for n in range(16))
    divisions = {card.address: division(number=n) for n, card in enumerate(cards)}
    wanted = replace(EVERYTHING, profiles=frozenset({"all"}))
    slices = render(
        Inventory(gpus=cards), node=NODE, driver=DRIVER, wishes=wanted, divisions=divisions
    )
    assert [str(finding) for each in slices for finding in check_slice(each)] == []
    assert check_pool(slices) == ()
    specs = [each["spec"] for each in slices]
    assert [len(spec.get("sharedCounters", ())) for spec in specs[:2]] == [8, 8]
    assert not any("devices" in spec for spec in specs[:2])
    assert not any("sharedCounters" in spec for spec in specs[2:])
    assert {spec["pool"]["resourceSliceCount"] for spec in specs} == {len(slices)}
    devices = [device for spec in specs for device in spec.get("devices", ())]
    assert len(devices) == 16 * 27
    assert all(len(device["name"]) <= limits.LABEL_BYTES for device in devices)
    at = {
        card.address: {
            position
            for position, spec in enumerate(specs)
            for device in spec.get("devices", ())
            if "-mig-" in device["name"] and card.address.slug in device["name"]
        }
        for card in cards
    }
    assert all(len(found) == 1 for found in at.values())


def test_the_default_is_whole_gpus_without_anything_else() -> None:
    for device in raw(of(gpu(0), wanted=Wishes())).values():
        assert set(device) == {"name", "attributes", "capacity"}
