"""The machines that users reported: our copies are the same, and the adapter sees what they say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.errors import InvalidInputError
from dragoon.gpu.model import FabricState, Gpu, Inventory
from dragoon.gpu.sim.profiles import find_machine, shipped
from dragoon.gpu.topology import numa_groups, nvlink_domains, pcie_switch_groups, relation
from tests.unit.gpu.rig import REPOSITORY, rig

_FOLDERS = [root / "shared/cases/topologies" for root in (REPOSITORY, REPOSITORY.parent)]
FOLDER = next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])
FILES = sorted(file for file in FOLDER.glob("*.yaml") if not file.name.startswith("_"))
# On this one the report says SYS inside a NUMA node, which sysfs does not tell from NODE.
SYS_INSIDE_A_NODE = "rtx4090-8way-pcie"

pytestmark = pytest.mark.skipif(not FILES, reason="no case files beside this checkout")
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


@pytest.fixture
def case(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(file.read_text())
    return loaded


@pytest.fixture
def found(file: Path, tmp_path: Path) -> Inventory:
    with rig(str(file), tmp_path) as machine:
        return machine.look()


def groups(found: Inventory, addresses: Any) -> list[list[int]]:
    slots = {gpu.address: slot for slot, gpu in enumerate(found.gpus)}
    return [[slots[address] for address in group] for group in addresses]


def test_every_file_ships_under_its_name() -> None:
    assert {file.stem for file in FILES} <= set(shipped())


@each_file
def test_the_shipped_machine_is_the_one_in_the_file(file: Path) -> None:
    assert find_machine(file.stem) == find_machine(str(file))


def test_a_file_of_another_schema_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="schema: found 'case-text-traps/1'"):
        find_machine(str(FOLDER / "_text-traps.yaml"))


@each_file
def test_products_memory_and_numa_nodes_are_those_of_the_file(
    case: dict[str, Any], found: Inventory
) -> None:
    assert len(found.gpus) == case["count"]
    assert found.lost == ()
    for entry, gpu in zip(case["gpus"], found.gpus, strict=True):
        mib = entry["memoryMiB"]
        assert gpu.product == entry["product"]
        assert gpu.memory_bytes == (None if mib is None else mib << 20)
        assert gpu.numa_node == entry["numaNode"]
        assert gpu.problems == ()
        if "pci" in entry:
            assert str(gpu.address) == entry["pci"]


@each_file
def test_nvlink_domains_are_the_groups_of_the_file(case: dict[str, Any], found: Inventory) -> None:
    expected = (case.get("nvlink") or {}).get("groups", [])
    assert groups(found, nvlink_domains(found.gpus)) == expected


@each_file
def test_switch_and_numa_groups_are_those_of_the_file(
    case: dict[str, Any], found: Inventory
) -> None:
    switches = case.get("pcieSwitchGroups") or []
    assert groups(found, pcie_switch_groups(found.gpus)) == switches
    nodes = numa_groups(found.gpus)
    assert dict(zip(nodes, groups(found, nodes.values()), strict=True)) == (
        case.get("numaGroups") or {}
    )


@each_file
def test_relations_are_the_cells_of_the_matrix(case: dict[str, Any], found: Inventory) -> None:
    for a, row in enumerate(case.get("matrix") or []):
        for b, cell in enumerate(row):
            if a != b:
                one, two = found.gpus[a], found.gpus[b]
                seen = relation(one, two, found.gpus)
                if case["name"] == SYS_INSIDE_A_NODE and one.numa_node == two.numa_node:
                    assert (cell, seen) == ("SYS", "NODE")
                else:
                    assert seen == cell


@each_file
def test_mig_is_on_the_cards_that_the_file_gives_it(case: dict[str, Any], found: Inventory) -> None:
    expected = [bool(case.get("mig")) and e.get("migCapable", True) for e in case["gpus"]]
    assert [gpu.mig is not None for gpu in found.gpus] == expected


@each_file
def test_the_fabric_is_the_one_of_the_file(case: dict[str, Any], found: Inventory) -> None:
    record = case.get("fabric") or {}
    complete = record.get("state") == "Completed"
    spans = complete and record["clusterUUID"].strip("0-") != ""
    for gpu in found.gpus:
        assert gpu.fabric.state is (FabricState.COMPLETED if complete else FabricState.UNSUPPORTED)
        assert gpu.fabric.cluster_uuid == (record["clusterUUID"] if spans else None)
        assert gpu.fabric.clique_id == (record["cliqueId"] if spans else None)


def test_c04_and_c53_an_address_may_lie_in_another_pci_domain(tmp_path: Path) -> None:
    for name in ("gb10-single", "gb200-tray-4gpu", "gh200-4way"):
        with rig(name, tmp_path / name) as machine:
            gpus: tuple[Gpu, ...] = machine.look().gpus
        assert all(gpu.address.domain > 0 for gpu in gpus)
