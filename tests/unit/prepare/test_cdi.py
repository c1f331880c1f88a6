"""CDI specs: names, versions, and what a runtime would refuse."""

import json
from typing import Any

import msgspec
import pytest

from dragoon.errors import CdiError
from dragoon.prepare import cdi
from dragoon.prepare.cdi import Device, DeviceNode, Edits, Hook, Mount, NetDevice, Spec
from dragoon.prepare.cdi_check import check, problems

KIND = "gpu.dragoon.dev/claim"
GOOD = Spec("0.5.0", KIND, (Device("0a_gpu_gpu-0000-10-00-0", Edits(env=("A=b",))),))


def with_edits(**fields: Any) -> Spec:
    return msgspec.structs.replace(GOOD, container_edits=Edits(**fields))


def test_a_name_holds_claim_request_and_device() -> None:
    assert cdi.device_name("0a-1", "g", "gpu-x") == "0a-1_g_gpu-x"
    assert cdi.device_name("0a-1", "g/ok", "gpu-x") == "0a-1_g.ok_gpu-x"
    assert cdi.device_name("0a-1", "g", "gpu-x", "s-1") == "0a-1_g_gpu-x_s-1"


def test_the_variable_of_a_device_is_a_valid_name() -> None:
    assert cdi.device_variable("gpu-0000-65-00-0", "GPU-1") == "DRAGOON_GPU_0000_65_00_0=GPU-1"


def test_a_claim_spec_keeps_the_older_runtime_hook_out_once() -> None:
    common = Edits(env=("NVIDIA_VISIBLE_DEVICES=void", "X=y"))
    spec = cdi.claim_spec(KIND, GOOD.devices, common)
    assert spec.container_edits.env == ("NVIDIA_VISIBLE_DEVICES=void", "X=y")


def test_what_a_spec_hands_out_is_read_back() -> None:
    name, uuid = "gpu-0000-65-00-0", "GPU-1"
    edits = Edits(env=(cdi.device_variable(name, uuid), "A=b"))
    named = Device(cdi.device_name("u-1", "gpu/big", name, "share"), edits)
    spec = cdi.claim_spec(KIND, (named, Device("n", edits)), Edits())
    assert cdi.devices_given(spec) == ((name, uuid), ("", uuid))


@pytest.mark.parametrize(
    ("spec", "version"),
    [
        (GOOD, "0.5.0"),
        (with_edits(mounts=(Mount("/a", "/b", (), "bind"),)), "0.5.0"),
        (with_edits(device_nodes=(DeviceNode("/dev/a", "/host/dev/a"),)), "0.5.0"),
        (msgspec.structs.replace(GOOD, kind="a.b/c.d"), "0.6.0"),
        (msgspec.structs.replace(GOOD, annotations={"a": "b"}), "0.6.0"),
        (with_edits(additional_gids=(1,)), "0.7.0"),
        (with_edits(net_devices=(NetDevice("eth1", "eth0"),)), "1.1.0"),
    ],
)
def test_the_version_is_as_low_as_the_content_allows(spec: Spec, version: str) -> None:
    assert cdi.lowest_version(spec) == version


def test_a_spec_is_written_with_the_fields_of_cdi_and_read_back() -> None:
    spec = with_edits(
        env=("A=b",),
        device_nodes=(DeviceNode("/dev/nvidia0", "/host/dev/nvidia0", permissions="rw"),),
        mounts=(Mount("/a", "/b", ("ro", "bind")),),
        hooks=(Hook("createContainer", "/usr/bin/x", ("x", "y"), ("PATH=/bin",)),),
    )
    data = cdi.encode(spec)

    edits = json.loads(data)["containerEdits"]
    assert edits["deviceNodes"] == [
        {"path": "/dev/nvidia0", "hostPath": "/host/dev/nvidia0", "permissions": "rw"}
    ]
    assert edits["mounts"] == [{"hostPath": "/a", "containerPath": "/b", "options": ["ro", "bind"]}]
    assert edits["hooks"][0]["hookName"] == "createContainer"
    assert cdi.decode(data) == spec
    assert cdi.encode(cdi.decode(data)) == data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"cdiVersion": "0.5.0"}', b"\xff"])
def test_what_is_no_spec_is_an_error(data: bytes) -> None:
    with pytest.raises(CdiError, match="not a CDI spec"):
        cdi.decode(data)


def test_unknown_fields_are_refused_as_a_runtime_does() -> None:
    body = json.loads(cdi.encode(GOOD)) | {"surprise": 1}
    with pytest.raises(CdiError, match="surprise"):
        cdi.decode(json.dumps(body).encode())


def test_a_good_spec_passes() -> None:
    check(GOOD)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (msgspec.structs.replace(GOOD, cdi_version="9.9.9"), "cdiVersion: found '9.9.9'"),
        (msgspec.structs.replace(GOOD, kind="claim"), "kind: found 'claim'"),
        (msgspec.structs.replace(GOOD, kind="/x"), "kind: found '/x'"),
        (msgspec.structs.replace(GOOD, devices=()), "devices: found none"),
        (msgspec.structs.replace(GOOD, devices=GOOD.devices * 2), "stands there 2 times"),
        (msgspec.structs.replace(GOOD, devices=(Device("a/b", Edits(env=("A=b",))),)), "'a/b'"),
        (msgspec.structs.replace(GOOD, devices=(Device("a_", Edits(env=("A=b",))),)), "'a_'"),
        (msgspec.structs.replace(GOOD, devices=(Device("a", Edits()),)), "are empty"),
        (with_edits(env=("NOVALUE",)), "found 'NOVALUE'"),
        (with_edits(env=("A=b\nLD_PRELOAD=c",)), "one line"),
        (with_edits(env=("1A=b",)), "found '1A=b'"),
        (with_edits(device_nodes=(DeviceNode("dev/a"),)), "path: found 'dev/a'"),
        (with_edits(device_nodes=(DeviceNode("/dev/a", "b"),)), "hostPath: found 'b'"),
        (with_edits(device_nodes=(DeviceNode("/dev/a", type="x"),)), "type: found 'x'"),
        (with_edits(device_nodes=(DeviceNode("/dev/a", permissions="rx"),)), "found 'rx'"),
        (with_edits(mounts=(Mount("/a/../b", "/c"),)), "hostPath: found '/a/../b'"),
        (with_edits(mounts=(Mount("/a", ""),)), "containerPath: found ''"),
        (with_edits(hooks=(Hook("later", "/a", (), ("A=b",)),)), "hookName: found 'later'"),
        (with_edits(hooks=(Hook("poststop", "a", (), ("A=b",)),)), "hooks: path: found 'a'"),
    ],
)
def test_each_problem_is_found_and_named(spec: Spec, told: str) -> None:
    assert len(tuple(problems(spec))) == 1
    with pytest.raises(CdiError) as caught:
        check(spec)
    assert told in str(caught.value)


def test_point_10_a_hook_without_an_environment_of_its_own_is_refused() -> None:
    spec = with_edits(hooks=(Hook("createContainer", "/usr/bin/nvidia-cdi-hook", ("x",)),))
    with pytest.raises(CdiError, match="no env of its own"):
        check(spec)


def test_a_runtime_itself_accepts_a_hook_without_an_environment() -> None:
    spec = with_edits(hooks=(Hook("createContainer", "/usr/bin/nvidia-cdi-hook", ("x",)),))
    assert not tuple(problems(spec))
