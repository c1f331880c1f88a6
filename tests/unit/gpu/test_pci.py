from pathlib import Path

import pytest

from dragoon.gpu.model import PciAddress
from dragoon.gpu.pci import BusCard, Roots, bus_cards, listed_uuid, node_cpus, seat

ADDRESS = PciAddress(0, 0x65, 0)
UUID = "GPU-6a1f5a0e-1c29-4e1c-9d7d-0123456789ab"


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(sys=tmp_path / "sys", proc=tmp_path / "proc", dev=tmp_path / "dev")


def lay(
    roots: Roots,
    address: str = "0000:65:00.0",
    above: str = "pci0000:64/0000:64:01.0",
    *,
    vendor: str = "0x10de",
    kind: str = "0x030200",
    numa: str = "1",
    driver: str | None = "nvidia",
) -> None:
    device = roots.sys / "devices" / above / address
    device.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("class", kind), ("numa_node", numa)):
        (device / name).write_text(text + "\n")
    if driver:
        (device / "driver").symlink_to(roots.sys / "bus/pci/drivers" / driver)
    link = roots.sys / "bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device)


def lay_listing(roots: Roots, address: str, text: str = "") -> None:
    folder = roots.proc / "driver/nvidia/gpus" / address
    folder.mkdir(parents=True)
    (folder / "information").write_text(text)


def test_a_seat_has_the_root_the_bridges_and_the_numa_node(roots: Roots) -> None:
    lay(roots)
    found = seat(roots, ADDRESS)
    assert found.root == "pci0000:64"
    assert found.path == ("pci0000:64", "0000:64:01.0")
    assert found.numa_node == 1


def test_the_root_is_found_below_other_folders_and_the_first_one_counts(roots: Roots) -> None:
    lay(roots, above="platform/soc/pci0008:00/0008:00:00.0/pci10000:00/10000:00:01.0")
    assert seat(roots, ADDRESS).root == "pci0008:00"


@pytest.mark.parametrize("numa", ["-1", "", "many"])
def test_c53_an_unknown_numa_node_is_absent(roots: Roots, numa: str) -> None:
    lay(roots, numa=numa)
    assert seat(roots, ADDRESS).numa_node is None


def test_c53_a_numa_node_without_cpus_is_not_the_node_of_the_cpus(roots: Roots) -> None:
    lay(roots, numa="9")
    node = roots.sys / "devices/system/node/node9"
    node.mkdir(parents=True)
    (node / "cpulist").write_text("\n")
    assert seat(roots, ADDRESS).numa_node is None
    (node / "cpulist").write_text("0-71\n")
    assert seat(roots, ADDRESS).numa_node == 9
    assert node_cpus(roots, 9) == "0-71"
    assert node_cpus(roots, 10) is None


def test_c53_a_card_that_sysfs_does_not_know_has_an_empty_seat(roots: Roots) -> None:
    found = seat(roots, ADDRESS)
    assert (found.root, found.path, found.numa_node) == (None, (), None)


def test_only_nvidia_display_devices_are_cards(roots: Roots) -> None:
    lay(roots)
    lay(roots, "0000:66:00.0", kind="0x030000")
    lay(roots, "0000:67:00.0", kind="0x068000")  # NVSwitch
    lay(roots, "0000:68:00.0", vendor="0x8086")
    lay(roots, "0000:69:00.0", kind="")
    assert [str(card.address) for card in bus_cards(roots)] == ["0000:65:00.0", "0000:66:00.0"]


def test_a_card_says_who_drives_it(roots: Roots) -> None:
    lay(roots, "0000:65:00.0", driver="nvidia")
    lay(roots, "0000:66:00.0", driver="vfio-pci")
    lay(roots, "0000:67:00.0", driver=None)
    ours, foreign, unbound = bus_cards(roots)
    assert (ours.ours, ours.foreign) == (True, False)
    assert (foreign.ours, foreign.foreign) == (False, True)
    assert (unbound.ours, unbound.foreign) == (False, False)


def test_the_listing_of_the_nvidia_module_adds_cards_and_uuids(roots: Roots) -> None:
    lay_listing(roots, "0000:65:00.0", f"Model: \t\t X\nGPU UUID: \t {UUID}\n")
    lay_listing(roots, "0000:66:00.0", "GPU UUID: \t GPU-????????-????\n")
    first, second = bus_cards(roots)
    assert first == BusCard(ADDRESS, listed=True)
    assert first.ours
    assert listed_uuid(roots, first.address) == UUID
    assert listed_uuid(roots, second.address) is None
    assert listed_uuid(roots, PciAddress(0, 0x67, 0)) is None


def test_names_that_are_no_addresses_are_passed_over(roots: Roots) -> None:
    (roots.proc / "driver/nvidia/gpus/notes").mkdir(parents=True)
    assert bus_cards(roots) == ()
