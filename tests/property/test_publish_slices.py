"""Whatever the hardware says, slices are valid and no card costs another."""

from hypothesis import given
from hypothesis import strategies as st

from dragoon.api.device_validation import check_device
from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.cel import compile_selector, device_view
from dragoon.gpu.model import Gpu, Inventory, PciAddress
from dragoon.gpu.naming import whole_name
from dragoon.publish import domains
from dragoon.publish.devices import build
from dragoon.publish.slices import render
from tests.property.publish_strategies import addresses, gpus, inventories
from tests.unit.publish.test_deviceclasses import CLASSES

NODE, DRIVER = "node-a", "gpu.dragoon.dev"


@given(inventories)
def test_slices_of_any_node_are_valid(found: Inventory) -> None:
    slices = render(found, node=NODE, driver=DRIVER)
    assert [str(finding) for each in slices for finding in check_slice(each)] == []
    assert check_pool(slices) == ()
    named = {card.address for card in found.cards if card.address is not None}
    devices = [device["name"] for each in slices for device in each["spec"]["devices"]]
    assert devices == sorted(map(whole_name, named))


@given(inventories)
def test_the_classes_fail_on_no_device_of_any_node(found: Inventory) -> None:
    for device in build(found).devices:
        view = device_view(DRIVER, device.raw())
        taken = [
            compile_selector(selector["cel"]["expression"]).evaluate(view)
            for class_ in CLASSES.values()
            for selector in class_["spec"]["selectors"]
        ]
        assert sum(taken) <= 1


@given(inventories, gpus)
def test_a_card_more_changes_no_other_device(found: Inventory, more: Gpu) -> None:
    taken = {card.address for card in found.cards}
    uuids = {gpu.uuid for gpu in found.gpus}
    if more.address in taken or more.uuid in uuids:
        return
    before = {device.name: device for device in build(found).devices}
    wider = Inventory(
        gpus=(*found.gpus, more),
        lost=found.lost,
        driver_version=found.driver_version,
        cuda_version=found.cuda_version,
        simulated=found.simulated,
    )
    after = {device.name: device for device in build(wider).devices}
    in_mig_mode = more.mig is not None and more.mig.enabled
    assert bool(after.pop(whole_name(more.address)).taints) is in_mig_mode
    assert after == before


@given(inventories, inventories)
def test_what_was_published_before_never_makes_a_device_invalid(
    before: Inventory, after: Inventory
) -> None:
    last_seen = {device.name: device.raw() for device in build(before).devices}
    for device in build(after, last_seen=last_seen).devices:
        assert list(check_device(device.raw(), device.name)) == []
        assert ("nvlinkDomain" in device.attributes) is False


@st.composite
def partitions(draw: st.DrawFn) -> list[list[PciAddress]]:
    """Disjoint groups of at least two cards."""
    cards = draw(st.lists(addresses, unique=True, max_size=12))
    groups: list[list[PciAddress]] = []
    while len(cards) >= 2:
        size = draw(st.integers(2, len(cards)))
        groups.append(cards[:size])
        cards = cards[size:]
    return groups


@given(st.lists(partitions(), min_size=1, max_size=6))
def test_domain_names_tell_groups_apart_and_stay_with_the_most_members(
    history: list[list[list[PciAddress]]],
) -> None:
    memory: dict[PciAddress, str] = {}
    for groups in history:
        named = domains.assign(groups, node=NODE, previous=memory)
        values = [{named[address] for address in group} for group in groups]
        assert all(len(value) == 1 for value in values)
        assert len(set().union(*values)) == len(groups)
        assert all(len(value.encode()) <= 64 for value in named.values())
        assert domains.assign(groups[::-1], node=NODE, previous=memory) == named
        assert domains.assign(groups, node=NODE, previous=named) == named
        memory |= named


@given(partitions(), st.data())
def test_a_card_that_drops_out_renames_nobody(
    groups: list[list[PciAddress]], data: st.DataObject
) -> None:
    before = domains.assign(groups, node=NODE, previous={})
    gone = data.draw(st.sampled_from([*before, None]))
    left = [[a for a in group if a != gone] for group in groups]
    after = domains.assign([g for g in left if len(g) > 1], node=NODE, previous=before)
    assert after.items() <= before.items()
