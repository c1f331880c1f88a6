import multiprocessing
from pathlib import Path

import pytest

from dragoon.errors import ConfigError, InvalidInputError, StateError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.opening import open_gpus, refuse_beside_driver
from dragoon.gpu.pci import Roots, bus_cards
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.profiles import find_machine
from dragoon.gpu.sim.state import Loss
from testbed.waiting import PATIENCE
from tests.unit.gpu.rig import Simulate, rig


def installed(folder: Path, machine: str = "dgx-h100", node: str = "node-a") -> Hardware:
    return Hardware.installed(folder / "machine.json", find_machine(machine), node)


def test_a_restart_sees_the_same_hardware(tmp_path: Path) -> None:
    first = installed(tmp_path)
    first.lose(3)
    first.set_uuid(1, "GPU-other")
    again = installed(tmp_path)
    assert again.read() == first.read()
    assert again.read().cards[3].loss is Loss.SILENT


def test_uuids_are_stable_and_differ_between_nodes_and_slots(tmp_path: Path) -> None:
    def uuids(folder: str, node: str) -> list[str]:
        return [card.uuid for card in installed(tmp_path / folder, node=node).read().cards]

    assert uuids("1", "a") == uuids("2", "a")
    assert len({*uuids("1", "a"), *uuids("3", "b")}) == 16


def test_a_state_file_with_another_machine_is_refused(tmp_path: Path) -> None:
    installed(tmp_path)
    with pytest.raises(ConfigError, match=r"dgx-h100.*t4") as caught:
        installed(tmp_path, "t4")
    assert caught.value.hint


@pytest.mark.parametrize("raw", [b"", b"{", b"{}", b'{"version": 2}'])
def test_a_broken_state_file_is_named(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "machine.json").write_bytes(raw)
    with pytest.raises(StateError, match=r"machine\.json"):
        installed(tmp_path)


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    hardware = installed(tmp_path)
    hardware.file.write_text(hardware.file.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(StateError, match="found version 9"):
        hardware.read()


def test_a_slot_that_is_not_there_is_refused(tmp_path: Path) -> None:
    hardware = installed(tmp_path)
    for change in (hardware.lose, hardware.bring_back):
        with pytest.raises(InvalidInputError, match="0 to 7"):
            change(8)
    with pytest.raises(InvalidInputError, match="found -1"):
        hardware.raise_xid(-1, 79)


def test_the_oldest_events_are_dropped(tmp_path: Path) -> None:
    hardware = installed(tmp_path, "t4")
    for xid in range(260):
        hardware.raise_xid(0, xid)
    events = hardware.read().events
    assert (len(events), events[-1].data, events[0].number) == (256, 259, 5)


def test_the_tree_follows_the_cards(tmp_path: Path) -> None:
    hardware = installed(tmp_path)

    def on_bus() -> set[PciAddress]:
        return {card.address for card in bus_cards(hardware.roots)}

    before = on_bus()
    hardware.lose(0, Loss.OFF_BUS)
    assert before - on_bus() == {hardware.read().address(0)}
    hardware.bring_back(0)
    assert on_bus() == before
    hardware.move(0, PciAddress(0, 0xC1, 0))
    assert PciAddress(0, 0xC1, 0) in on_bus()


def test_a_tree_that_was_deleted_is_laid_again_at_the_next_start(tmp_path: Path) -> None:
    hardware = installed(tmp_path)
    before = bus_cards(hardware.roots)
    hardware.roots.sys.rename(tmp_path / "aside")
    assert len(bus_cards(installed(tmp_path).roots)) == len(before)


def test_files_have_the_modes_that_were_chosen(tmp_path: Path) -> None:
    hardware = installed(tmp_path)
    assert hardware.file.stat().st_mode & 0o777 == 0o644
    assert hardware.file.with_name("machine.json.lock").stat().st_mode & 0o777 == 0o600


def raise_many(file: Path, slot: int) -> None:
    hardware = Hardware(file)
    for xid in range(25):
        hardware.raise_xid(slot, xid)


def test_changes_by_several_processes_are_all_kept(tmp_path: Path) -> None:
    hardware = installed(tmp_path)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=raise_many, args=(hardware.file, slot)) for slot in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    events = hardware.read().events
    assert [event.number for event in events] == list(range(1, 101))
    for slot in range(4):
        assert [event.data for event in events if event.slot == slot] == list(range(25))


def look_and_lose(file: Path, answers: "multiprocessing.Queue[list[str]]") -> None:
    gpus = open_gpus(None, file, beside_driver=True)
    answers.put([gpu.uuid for gpu in gpus.inventory().gpus])
    Hardware(file).lose(2)
    answers.put([gpu.uuid for gpu in gpus.inventory().gpus])
    gpus.close()


def test_processes_that_share_a_state_file_see_one_machine(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.Queue[list[str]] = context.Queue()
    with rig("l40s-4way-pcie", tmp_path, node="n") as machine:
        before = [gpu.uuid for gpu in machine.look().gpus]
        worker = context.Process(target=look_and_lose, args=(machine.hardware.file, answers))
        worker.start()
        assert answers.get(timeout=PATIENCE) == before
        after = answers.get(timeout=PATIENCE)
        worker.join()
        assert after == [*before[:2], before[3]]
        assert [gpu.uuid for gpu in machine.look().gpus] == after


def test_opening_without_a_state_file_leaves_nothing_behind() -> None:
    gpus = open_gpus("t4", beside_driver=True)
    assert gpus.inventory().simulated
    folder = gpus.roots.sys.parent.parent
    assert folder.is_dir()
    gpus.close()
    assert not folder.exists()


def test_a_state_file_without_a_name_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--simulate"):
        open_gpus(None, tmp_path / "none.json", beside_driver=True)


def test_a_state_file_names_its_machine(simulate: Simulate) -> None:
    machine = simulate("t4")
    gpus = open_gpus(None, machine.hardware.file, beside_driver=True)
    assert gpus.inventory() == machine.look()
    gpus.close()


def test_simulating_beside_a_real_driver_is_refused(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    refuse_beside_driver(proc)
    (proc / "driver/nvidia").mkdir(parents=True)
    (proc / "driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX\n")
    with pytest.raises(ConfigError, match="real driver"):
        open_gpus("t4", roots=Roots(proc=proc))
    open_gpus("t4", roots=Roots(proc=proc), beside_driver=True).close()


def test_an_unknown_machine_makes_no_state_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        open_gpus("nothing", tmp_path / "machine.json", beside_driver=True)
    assert list(tmp_path.iterdir()) == []
