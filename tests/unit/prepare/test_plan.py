"""From a raw claim to what is to be done; every refusal names what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.errors import (
    ClaimError,
    ClaimGoneError,
    ClaimNotAllocatedError,
    DeviceLostError,
    DragoonError,
    HardwareError,
    InvalidInputError,
    UnknownDeviceError,
)
from dragoon.gpu.model import Inventory, LostGpu, PciAddress
from dragoon.prepare.cdi import DeviceNode, Edits, Mount
from dragoon.prepare.given import given
from dragoon.prepare.journal import Entry, State
from dragoon.prepare.plan import plan
from dragoon.prepare.steps import CdiFile, Marker
from tests.unit.prepare.scene import (
    DRIVER,
    POOL,
    claim_object,
    device,
    gpu,
    inventory,
    result,
    settings,
)

UID = "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"
REF = ClaimRef("team-a", "one", UID)
SETTINGS = settings(Path("/node"))
COMMON = Edits(device_nodes=(DeviceNode("/dev/nvidiactl"),))


def raw(*results: dict[str, Any], config: Any = (), uid: str = UID) -> dict[str, Any]:
    found = claim_object("one", *results, config=config)
    found["metadata"]["uid"] = uid
    return found


def planned(*results: dict[str, Any], found: Inventory | None = None, config: Any = ()) -> Entry:
    allocation = given(raw(*results, config=config), REF, SETTINGS)
    here = inventory() if found is None else found
    return plan(allocation, here, SETTINGS, boot_id="b", common=COMMON)


def spec_of(entry: Entry) -> CdiFile:
    (found,) = (step for step in entry.steps if isinstance(step, CdiFile))
    return found


def test_a_simulated_gpu_gets_a_marker_and_no_device_file() -> None:
    entry = planned(result(1))
    assert entry.state is State.PREPARING
    assert [step.device for step in entry.steps if isinstance(step, Marker)] == [device(1)]
    spec = spec_of(entry).spec
    assert spec.container_edits == Edits(env=("NVIDIA_VISIBLE_DEVICES=void",))
    (edits,) = (one.container_edits for one in spec.devices)
    assert edits.device_nodes == ()
    assert edits.mounts == (
        Mount(
            f"/node/state/markers/{UID}_{device(1)}.json",
            f"/dev/dragoon/{device(1)}",
            ("ro", "nosuid", "nodev", "bind"),
        ),
    )


def test_a_real_gpu_gets_its_own_device_file_and_the_common_edits() -> None:
    entry = planned(result(3), found=inventory(simulated=False))
    spec = spec_of(entry).spec
    assert spec.container_edits.device_nodes == COMMON.device_nodes
    assert spec.devices[0].container_edits == Edits(
        env=(f"DRAGOON_GPU_0000_13_00_0={gpu(3).uuid}",), device_nodes=(DeviceNode("/dev/nvidia3"),)
    )
    assert not any(isinstance(step, Marker) for step in entry.steps)


def test_device_files_are_named_as_the_container_runtime_sees_them() -> None:
    elsewhere = settings(Path("/node"), dev_root=Path("/run/nvidia/driver"))
    allocation = given(raw(result(0)), REF, elsewhere)
    real = inventory(simulated=False)
    entry = plan(allocation, real, elsewhere, boot_id="b", common=COMMON)
    (node,) = spec_of(entry).spec.devices[0].container_edits.device_nodes
    assert node == DeviceNode("/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0")


def test_the_answer_has_base_request_names_and_ids_with_the_whole_name() -> None:
    entry = planned(result(0, request="g/ok"), result(1, request="h", shareID="s-1"))
    first, second = entry.answer()
    assert first.requests == ("g",)
    assert first.cdi_ids == (f"{DRIVER}/claim={UID}_g.ok_{device(0)}",)
    assert first.share_id is None
    assert second.share_id == "s-1"
    assert second.cdi_ids == (f"{DRIVER}/claim={UID}_h_{device(1)}_s-1",)


def test_c42_results_of_other_drivers_are_skipped() -> None:
    entry = planned(result(0, driver="dra.net", pool="nics", device="eth0"), result(1))
    assert [held.device for held in entry.devices] == [device(1)]


def test_c42_a_claim_with_nothing_of_ours_is_empty() -> None:
    allocation = given(raw(result(0, driver="dra.net")), REF, SETTINGS)
    assert allocation.devices == ()


def test_c42_config_for_other_drivers_is_ignored() -> None:
    config = [{"source": "FromClaim", "opaque": {"driver": "dra.net", "parameters": {"x": 1}}}]
    assert planned(result(0), config=config).devices


@pytest.mark.parametrize("parameters", [{"kind": "GpuConfig"}, {}, None])
@pytest.mark.parametrize("requests", [[], ["gpu"], ["other"]])
def test_config_addressed_to_us_that_is_not_understood_is_a_final_error(
    parameters: Any, requests: list[str]
) -> None:
    config = [
        {"source": "FromClass", "opaque": {"driver": "dra.net"}},
        {"requests": requests, "opaque": {"driver": DRIVER, "parameters": parameters}},
    ]
    with pytest.raises(InvalidInputError, match=r"config\[1\].*found.*, allowed is") as caught:
        planned(result(0), config=config)
    assert UID in str(caught.value)
    assert not caught.value.retryable


def test_another_claim_of_the_same_name_is_gone() -> None:
    with pytest.raises(ClaimGoneError, match="its UID is other"):
        given(raw(result(0), uid="other"), REF, SETTINGS)


def test_a_claim_without_allocation_may_get_one_later() -> None:
    without = raw()
    del without["status"]["allocation"]
    with pytest.raises(ClaimNotAllocatedError) as caught:
        given(without, REF, SETTINGS)
    assert caught.value.retryable


TWINS = Inventory(gpus=(gpu(0), gpu(0, uuid="GPU-twin")), simulated=True)
LOST = Inventory(lost=(LostGpu(PciAddress(0, 0x10, 0), "GPU is lost"),), simulated=True)
NAMELESS = Inventory(gpus=(gpu(0, minor=None),))


@pytest.mark.parametrize(
    ("found", "results", "error", "told"),
    [
        (inventory(2), [result(5)], UnknownDeviceError, f"it has {device(0)}, {device(1)}"),
        (Inventory(), [result(0)], UnknownDeviceError, "it has none"),
        (inventory(), [result(0, device="../../x")], UnknownDeviceError, "'../../x'"),
        (inventory(), [result(0, pool="node-b/gpu")], UnknownDeviceError, repr(POOL)),
        (LOST, [result(0)], DeviceLostError, "GPU is lost"),
        (TWINS, [result(0)], HardwareError, "2 GPUs answer at the address"),
        (NAMELESS, [result(0)], HardwareError, "/dev/nvidia<minor>"),
        (inventory(), [result(0), result(0, request="b")], ClaimError, "twice to one claim"),
        (inventory(), [result(0, adminAccess=True)] * 2, ClaimError, "twice to one claim"),
    ],
)
def test_what_cannot_be_prepared_is_refused_for_good_and_says_why(
    found: Inventory, results: list[dict[str, Any]], error: type[DragoonError], told: str
) -> None:
    with pytest.raises(error) as caught:
        planned(*results, found=found)
    assert told in str(caught.value)
    assert not caught.value.retryable
    assert UID in str(caught.value) or found is NAMELESS


def test_a_lost_card_does_not_cost_the_claim_of_another() -> None:
    found = Inventory(gpus=(gpu(1),), lost=LOST.lost, simulated=True)
    assert planned(result(1), found=found).devices


def test_two_admin_requests_may_see_one_gpu() -> None:
    entry = planned(result(0, adminAccess=True), result(0, request="b", adminAccess=True))
    assert len(entry.devices) == 2
    assert sum(isinstance(step, Marker) for step in entry.steps) == 1


def test_c12_a_driver_version_of_any_shape_does_not_matter_here() -> None:
    for version in ("580.159.04", "1.2.3.4", "", None):
        found = Inventory(gpus=(gpu(0),), driver_version=version, simulated=True)
        assert planned(result(0), found=found).devices


def test_a_uid_that_could_leave_its_folder_is_refused() -> None:
    ref = ClaimRef("team-a", "one", "../../etc/x")
    allocation = given(raw(result(0), uid=ref.uid), ref, SETTINGS)
    with pytest.raises(InvalidInputError, match="claim UID"):
        plan(allocation, inventory(), SETTINGS, boot_id="b", common=COMMON)
