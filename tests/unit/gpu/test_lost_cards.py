from dragoon.gpu.model import Gpu, LostGpu, PciAddress
from dragoon.gpu.nvml.lost import locate, told_apart
from dragoon.gpu.pci import BusCard


def at(number: int) -> PciAddress:
    return PciAddress(0, number, 0)


def gpu(number: int) -> Gpu:
    return Gpu(address=at(number), index=number, uuid=f"GPU-{number}")


def bound(number: int, driver: str | None = "nvidia") -> BusCard:
    return BusCard(at(number), kernel_driver=driver, listed=driver == "nvidia")


def test_nothing_is_lost_when_every_card_answers() -> None:
    assert locate([gpu(1), gpu(2)], [], [bound(1), bound(2)], {}) == ()


def test_a_nameless_card_is_the_one_that_the_bus_has_and_nobody_answered_for() -> None:
    lost = locate([gpu(1), gpu(3)], [LostGpu(None, "gone")], [bound(1), bound(2), bound(3)], {})
    assert lost == (LostGpu(at(2), "gone"),)


def test_a_card_that_the_library_does_not_list_is_lost() -> None:
    (lost,) = locate([gpu(1)], [], [bound(1), bound(2)], {})
    assert (lost.address, lost.uuid) == (at(2), None)
    assert "not listed" in lost.reason


def test_a_lost_card_has_the_uuid_that_was_seen_earlier() -> None:
    (lost,) = locate([], [], [bound(2)], {at(2): "GPU-seen"})
    assert lost.uuid == "GPU-seen"


def test_a_card_that_left_the_bus_is_still_reported() -> None:
    (lost,) = locate([gpu(1)], [], [bound(1)], {at(1): "GPU-1", at(2): "GPU-2"})
    assert (lost.address, lost.uuid, lost.reason) == (at(2), "GPU-2", "no longer on the PCI bus")


def test_a_card_taken_by_another_kernel_driver_is_not_lost() -> None:
    bus = [bound(1), bound(2, driver="vfio-pci")]
    assert locate([gpu(1)], [], bus, {at(2): "GPU-2"}) == ()


def test_a_card_without_a_kernel_driver_is_lost_only_if_the_library_misses_one() -> None:
    bus = [bound(1), bound(2, driver=None)]
    assert locate([gpu(1)], [], bus, {}) == ()
    assert locate([gpu(1)], [LostGpu(None, "gone")], bus, {}) == (LostGpu(at(2), "gone"),)


def test_a_card_that_nothing_places_stays_nameless_and_comes_last() -> None:
    silent = [LostGpu(None, "gone"), LostGpu(at(9), "silent")]
    assert locate([gpu(1)], silent, [bound(1)], {}) == (
        LostGpu(at(9), "silent"),
        LostGpu(None, "gone"),
    )


def test_two_cards_at_one_address_are_one_lost_card() -> None:
    gpus, lost = told_apart([gpu(1), gpu(2), LostGpu(at(2), "silent"), gpu(3)])
    assert [card.address for card in gpus] == [at(1), at(3)]
    assert [(card.address, card.reason) for card in lost] == [
        (at(2), "2 cards answer at this address")
    ]


def test_nameless_cards_do_not_clash() -> None:
    gpus, lost = told_apart([LostGpu(None, "a"), LostGpu(None, "b")])
    assert (gpus, len(lost)) == ((), 2)
