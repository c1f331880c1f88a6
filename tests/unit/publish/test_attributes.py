"""Cases C04, C10, C12, C53: what a GPU says about itself, and what it does not."""

from pathlib import Path
from typing import Any

import pytest

from dragoon.api.slice_validation import check_slice
from dragoon.gpu.model import Fabric, FabricState, NvLink
from dragoon.publish import attribute_reference
from dragoon.publish.attributes import ATTRIBUTES
from dragoon.publish.slices import render
from tests.unit.publish.nodes import (
    DRIVER,
    NODE,
    attribute,
    built,
    gpu,
    inventory,
    machine,
    published,
)

CLUSTER = "11111111-2222-3333-4444-555555555555"
H100 = "gpu-0000-11-00-0"


def described(found: Any = None, **changes: Any) -> dict[str, Any]:
    """The raw device of a lone GPU."""
    found = found or inventory(gpu(0, **changes))
    return next(iter(published(found).values()))


def test_an_h100_says_all_that_the_design_lists() -> None:
    device = published(machine("dgx-h100"))[H100]
    values = {name: attribute(device, name) for name in device["attributes"]}
    domain = values.pop("nvlinkDomain")
    assert values.pop("uuid").startswith("GPU-")
    assert values == {
        "type": "gpu",
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "NVIDIA",
        "architecture": "Hopper",
        "cudaComputeCapability": "9.0.0",
        "driverVersion": "580.95.5",
        "cudaDriverVersion": "13.0.0",
        "simulated": True,
        "nvlinkBandwidth": 478,
        "resource.kubernetes.io/pciBusID": "0000:11:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:10",
        "resource.kubernetes.io/numaNode": 0,
    }
    assert len(domain.encode()) <= 64
    assert device["capacity"] == {"memory": {"value": "81559Mi"}}


def test_a_real_gpu_does_not_say_simulated() -> None:
    assert "simulated" not in described()["attributes"]


def test_c04_a_gpu_of_unknown_size_is_published_without_capacity() -> None:
    (device,) = published(machine("gb10-single")).values()
    assert "capacity" not in device
    assert attribute(device, "type") == "gpu"


@pytest.mark.parametrize(
    ("size", "text"), [(85520809984, "81559Mi"), (85899345920, "80Gi"), (1023, "1023")]
)
def test_memory_is_a_canonical_quantity_of_bytes(size: int, text: str) -> None:
    assert described(memory_bytes=size)["capacity"]["memory"]["value"] == text


def test_c10_a_completed_fabric_gives_uuid_and_clique() -> None:
    fabric = Fabric(FabricState.COMPLETED, CLUSTER, 4026)
    assert attribute(described(fabric=fabric), "fabricClique") == f"{CLUSTER}.4026"


@pytest.mark.parametrize(
    "fabric",
    [
        Fabric(FabricState.UNSUPPORTED),
        Fabric(FabricState.NOT_STARTED),
        Fabric(FabricState.IN_PROGRESS, reason="still going"),
        Fabric(FabricState.COMPLETED, reason="zero UUID"),
        Fabric(FabricState.COMPLETED, clique_id=1, reason="zero UUID"),
    ],
)
def test_c10_any_other_fabric_state_publishes_without_it_and_without_complaint(
    fabric: Fabric,
) -> None:
    found = inventory(gpu(0, fabric=fabric))
    assert "fabricClique" not in described(found)["attributes"]
    assert built(found).problems == ()


def test_c10_a_failed_fabric_has_a_visible_reason() -> None:
    fabric = Fabric(FabricState.FAILED, reason="registration failed: NVML says 999")
    found = inventory(gpu(0, fabric=fabric))
    assert "fabricClique" not in described(found)["attributes"]
    assert built(found).problems == (
        "GPU 0000:10:00.0: no fabricClique: registration failed: NVML says 999",
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("580.159.04", "580.159.4"),
        ("580.95.05", "580.95.5"),
        ("470.82", "470.82.0"),
        ("580.00.00", "580.0.0"),
    ],
)
def test_c12_a_driver_version_is_normalised(text: str, version: str) -> None:
    found = inventory(gpu(0), driver_version=text)
    assert attribute(described(found), "driverVersion") == version


@pytest.mark.parametrize("text", ["580.159.04.1", "", "unknown", "1" * 70])
def test_c12_a_driver_version_that_is_none_is_left_out_with_one_line(text: str) -> None:
    found = inventory(gpu(0), gpu(1), driver_version=text)
    for device in published(found).values():
        assert "driverVersion" not in device["attributes"]
    (problem,) = built(found).problems
    assert problem.startswith("left out driverVersion")
    assert repr(text) in problem
    assert [f for s in render(found, node=NODE, driver=DRIVER) for f in check_slice(s)] == []


def test_c12_any_optional_attribute_that_fails_costs_itself_alone() -> None:
    found = inventory(gpu(0, product="N" * 65, pcie_root="ü" * 33), gpu(1))
    first, second = published(found).values()
    assert "productName" not in first["attributes"]
    assert "resource.kubernetes.io/pcieRoot" not in first["attributes"]
    assert attribute(second, "productName") == "NVIDIA H100 80GB HBM3"
    assert len(built(found).problems) == 2


@pytest.mark.parametrize("node", [None, -1])
def test_c53_an_unknown_numa_node_is_absent(node: int | None) -> None:
    assert "resource.kubernetes.io/numaNode" not in described(numa_node=node)["attributes"]


def test_c53_numa_node_zero_is_a_node() -> None:
    assert attribute(described(numa_node=0), "resource.kubernetes.io/numaNode") == 0


def test_c53_a_grace_gpu_publishes_the_node_of_its_cpus() -> None:
    found = published(machine("gb200-tray-4gpu")).values()
    assert [attribute(device, "resource.kubernetes.io/numaNode") for device in found] == [
        0,
        0,
        1,
        1,
    ]


def test_c53_pcie_roots_have_the_kernels_form() -> None:
    for device in published(machine("dgx-a100-40gb")).values():
        root = attribute(device, "resource.kubernetes.io/pcieRoot")
        assert root.startswith("pci0000:")
        assert len(root) == len("pci0000:00")


def test_bandwidth_counts_links_that_are_up() -> None:
    links = tuple(NvLink(i, active=i < 3, mb_per_second=26562) for i in range(4))
    assert attribute(described(links=links), "nvlinkBandwidth") == 79


def test_bandwidth_is_absent_where_one_speed_is_unknown() -> None:
    links = (NvLink(0, active=True, mb_per_second=26562), NvLink(1, active=True))
    assert "nvlinkBandwidth" not in described(links=links)["attributes"]


def test_own_attributes_have_no_domain_and_none_is_an_index() -> None:
    names = [a.name for a in ATTRIBUTES]
    assert len(names) == len(set(names)) <= 31
    assert not any("index" in name.lower() or "minor" in name.lower() for name in names)
    assert {n.split("/")[0] for n in names if "/" in n} == {"resource.kubernetes.io"}


def test_the_attribute_page_is_made_from_the_table() -> None:
    page = Path(__file__).parents[3] / "docs/attributes.md"
    assert page.read_text("utf-8") == attribute_reference.reference()
