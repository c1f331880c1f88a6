"""Reading a topology file: what is refused, and how the refusal reads."""

from pathlib import Path

import pytest
import yaml

from dragoon.errors import InvalidInputError
from dragoon.gpu.model import PciAddress
from dragoon.gpu.sim.machine import FABRIC_IN_PROGRESS
from dragoon.gpu.sim.profiles import find_machine, machine_from, shipped

GOOD: dict[str, object] = {
    "schema": "case-topology/1",
    "name": "pair",
    "count": 2,
    "gpus": [{"index": 0, "product": "NVIDIA H100"}, {"index": 1, "product": "NVIDIA H100"}],
}
PAIR = {"via": "bridge", "linksPerGPU": 4, "pairs": [{"a": 0, "b": 1, "links": 4}]}


def text(**changes: object) -> str:
    return yaml.safe_dump({**GOOD, **changes})


def gpus(**fields: object) -> list[dict[str, object]]:
    return [
        {"index": 0, "product": "NVIDIA H100", **fields},
        {"index": 1, "product": "NVIDIA H100"},
    ]


@pytest.mark.parametrize(
    ("changes", "where", "found", "allowed"),
    [
        ({"schema": "case-text-traps/1"}, "schema", "case-text-traps/1", "case-topology/1"),
        ({"colour": 1}, "field", "colour", "confidence, count"),
        ({"gpus": gpus(memmoryMiB=1)}, "gpus[0]: field", "memmoryMiB", "memoryMiB"),
        ({"nvlink": {"vias": "none"}}, "nvlink: field", "vias", "linksPerGPU"),
        ({"gpus": gpus(memoryMiB="80 GB")}, "gpus[0].memoryMiB", "'80 GB'", "int"),
        ({"gpus": gpus(memoryMiB=-1)}, "gpus[0].memoryMiB", "-1", ">= 1"),
        ({"gpus": gpus(product="")}, "gpus[0].product", "''", "length >= 1"),
        ({"gpus": gpus(architecture="Pharao")}, "gpus[0].architecture", "Pharao", "Hopper"),
        ({"gpus": gpus(memoryQuery="NO")}, "gpus[0].memoryQuery", "NO", "NOT_SUPPORTED"),
        ({"gpus": gpus(pci="somewhere")}, "gpus[0].pci", "somewhere", "allowed: a PCI address"),
        (
            {"gpus": gpus(pciPath="pci0000:00/../../etc")},
            "gpus[0].pciPath",
            "..",
            "allowed: a PCI path",
        ),
        ({"count": 3}, "gpus[].index", "[0, 1]", "0 to 2"),
        ({"count": 0}, "count", "0", ">= 1"),
        ({"name": "../up"}, "name", "../up", "allowed: at most 63"),
        ({"matrix": [["X", "SYS"]]}, "matrix", "[2]", "2 rows of 2"),
        ({"matrix": [["X", "SYS"], ["NODE", "X"]]}, "matrix[0][1]", "SYS", "NODE"),
        ({"matrix": [["X", "FAST"], ["FAST", "X"]]}, "matrix[0][1]", "FAST", "PIX"),
        ({"matrix": [["SYS", "SYS"], ["SYS", "SYS"]]}, "matrix[0][0]", "SYS", "X"),
        ({"matrix": [["X", "NV4"], ["NV4", "X"]]}, "matrix[0][1]", "NV4", "0 links"),
        ({"nvlink": {"via": "wire"}}, "nvlink.via", "wire", "bridge"),
        ({"nvlink": {**PAIR, "linksPerGPU": 2}}, "nvlink.pairs of GPU 0", "4", "at most 2"),
        ({"nvlink": {**PAIR, "pairs": PAIR["pairs"] * 2}}, "nvlink.pairs", "twice", "once"),  # type: ignore[operator]
        ({"nvlink": {**PAIR, "pairs": [{"a": 1, "b": 1, "links": 1}]}}, "pairs", "1-1", "two"),
        ({"nvlink": {**PAIR, "via": "none"}}, "nvlink.pairs", "(0, 1)", "none"),
        ({"nvlink": {**PAIR, "via": "nvswitch", "linksPerGPU": 8}}, "0-1", "4", "8 links"),
        ({"pcieSwitchGroups": [[0, 1], [1]]}, "pcieSwitchGroups", "(1,)", "at most once"),
        ({"numaGroups": {1: [0]}}, "numaGroups[1]", "None", "numaNode"),
        ({"fabric": {"state": "Sleepy"}}, "fabric.state", "Sleepy", "In Progress"),
        ({"fabric": {"state": "Completed", "status": "?"}}, "fabric.status", "?", "success"),
        ({"fabric": {"state": "Completed", "clusterUUID": "x"}}, "clusterUUID", "x", "a UUID"),
        ({"fabric": {"state": "Completed", "cliqueId": -1}}, "cliqueId", "-1", ">= 0"),
    ],
)
def test_a_wrong_field_is_named_with_what_was_found_and_what_is_allowed(
    changes: dict[str, object], where: str, found: str, allowed: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        machine_from(text(**changes), "my.yaml")
    message = caught.value.message
    assert message.startswith("my.yaml: ")
    for part in (where, found, allowed):
        assert part in message


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "Bad Name"}, "name: found 'Bad Name', allowed: at most 63 lower-case letters"),
        ({"cudaVersion": "x"}, "cudaVersion: found 'x', allowed: a number, a dot and one digit"),
        ({"gpus": gpus(pci="x")}, "gpus[0].pci: found 'x', allowed: a PCI address"),
        ({"gpus": gpus(pciPath="x")}, "gpus[0].pciPath: found 'x', allowed: a PCI path"),
        ({"gpus": gpus(cpus="x")}, "gpus[0].cpus: found 'x', allowed: numbers and ranges"),
        ({"gpus": gpus(computeCapability="x")}, "Capability: found 'x', allowed: two numbers"),
    ],
)
def test_a_text_that_does_not_match_is_told_in_words(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        machine_from(text(**changes), "my.yaml")
    assert told in caught.value.message


def profile(**fields: object) -> dict[str, object]:
    entry = {"name": "1g.10gb", "id": 19, "instances": 7, "starts": [0, 1], "size": 1, **fields}
    return {"axisWidth": 8, "profiles": [entry]}


@pytest.mark.parametrize(
    ("mig", "where"),
    [
        (profile(name="small"), "found 'small', allowed: the name of a MIG profile, such as 1g"),
        (profile(name="5g.10gb"), "slices and suffix"),
        (profile(name="1g.10gb+what"), "slices and suffix"),
        (profile(starts=[8]), "axisWidth 8"),
        (profile(starts=[]), "axisWidth 8"),
        ({"axisWidth": 8, "profiles": profile()["profiles"] * 2}, "every profile once"),  # type: ignore[operator]
    ],
)
def test_a_wrong_mig_profile_is_refused(mig: dict[str, object], where: str) -> None:
    with pytest.raises(InvalidInputError, match=where):
        machine_from(text(mig=mig), "my.yaml")


@pytest.mark.parametrize(
    "raw", ["[1, 2]", "", "a: [", "just words", "a: 2026-13-45", "a: 0x_", "a: " + "9" * 5000]
)
def test_what_is_no_mapping_is_refused(raw: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^my\.yaml: "):
        machine_from(raw, "my.yaml")


@pytest.mark.parametrize("name", ["dgx-h101", "", "/", "x" * 5000, "a\0b", "../machines/t4"])
def test_an_unknown_name_lists_the_machines(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        find_machine(name)
    assert repr(name) in caught.value.message
    for allowed in shipped():
        assert allowed in caught.value.message


def test_a_path_to_a_file_is_a_machine(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text())
    assert find_machine(str(file)).name == "pair"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="no text in UTF-8"):
        find_machine(str(file))


def test_given_addresses_and_paths_are_kept_and_others_keep_clear_of_them() -> None:
    entries = gpus(pci="00000000:10:00.0", pciPath="pci0000:0f/0000:0f:03.1")
    first, second = machine_from(text(gpus=entries), "x").cards
    assert first.address == PciAddress(0, 0x10, 0)
    assert first.bridges == ("pci0000:0f", "0000:0f:03.1")
    assert second.address != first.address


def test_two_cards_with_one_address_are_refused() -> None:
    entries = [{**entry, "pci": "0000:65:00.0"} for entry in gpus()]
    with pytest.raises(InvalidInputError, match="distinct"):
        machine_from(text(gpus=entries), "my.yaml")


def test_a_product_that_nobody_knows_answers_nothing_made_up() -> None:
    entries = [{"index": i, "product": "Prototype"} for i in range(2)]
    card = machine_from(text(gpus=entries), "x").cards[0]
    assert (card.architecture, card.brand, card.compute_capability) == (None, None, None)


def test_facts_in_the_file_win_over_the_catalogue() -> None:
    entries = gpus(architecture="Blackwell", brand="Tesla", computeCapability="12.3", minor=9)
    card = machine_from(text(gpus=entries), "x").cards[0]
    assert (card.architecture, card.brand) == ("Blackwell", "Tesla")
    assert (card.compute_capability, card.minor) == ((12, 3), 9)


def test_a_fabric_in_progress_can_be_written_down() -> None:
    machine = machine_from(text(fabric={"state": "In Progress"}), "x")
    assert machine.cards[0].fabric.state == FABRIC_IN_PROGRESS


def test_cards_under_two_levels_of_switches_have_paths_that_say_so() -> None:
    cells = {(0, 1): "PIX", (0, 2): "PXB", (1, 2): "PXB", (0, 3): "PHB", (1, 3): "PHB"}
    cells |= {(2, 3): "PHB"}
    matrix = [["X" if a == b else cells[min(a, b), max(a, b)] for b in range(4)] for a in range(4)]
    entries = [{"index": i, "product": "NVIDIA L4"} for i in range(4)]
    machine = machine_from(text(count=4, gpus=entries, matrix=matrix), "x")
    paths = [card.bridges for card in machine.cards]
    assert len({path[0] for path in paths}) == 1
    assert paths[0][:-1] == paths[1][:-1]
    assert paths[0][:3] == paths[2][:3] != paths[3][:3]
