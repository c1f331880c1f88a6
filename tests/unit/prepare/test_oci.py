"""What becomes of a container's OCI runtime spec, as container runtimes do it.

`cdi_library_cases.json` is what the CDI Go library 1.1.0 made of random specs: `specs` are the files of
the folder, `ids` what the container asks for, `before` and `after` its config. Of the host it saw
the device files in HOST. Empty values, which Go writes and JSON does not need, are left out.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.errors import CdiError, InvalidInputError
from dragoon.prepare import cdi, oci
from dragoon.prepare.cdi import DeviceNode, Edits, Hook, IntelRdt, Mount, NetDevice
from dragoon.prepare.injection import edits_for
from dragoon.prepare.oci import HostFile

BARE: dict[str, Any] = {
    "ociVersion": "1.2.0",
    "process": {"user": {"uid": 1000, "gid": 0}, "env": ["PATH=/bin", "LD_PRELOAD=./evil.so"]},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
    ],
    "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}]}},
}
HOST = {
    "/dev/nvidia0": HostFile("c", 195, 0, 0o666),
    "/dev/null": HostFile("c", 1, 3, 0o666),
    "/dev/zero": HostFile("c", 1, 5, 0o666),
    "/dev/full": HostFile("c", 1, 7, 0o666),
}
CASES = json.loads((Path(__file__).parent / "cdi_library_cases.json").read_text("utf-8"))


def after(*edits: Edits, config: dict[str, Any] | None = None) -> dict[str, Any]:
    before = copy.deepcopy(config or BARE)
    found = oci.apply(before, edits, HOST.get)
    assert before == (config or BARE), "what was given is left as it is"
    return found


def test_nothing_given_changes_nothing() -> None:
    assert after(Edits()) == BARE


def test_variables_of_cdi_follow_those_of_the_pod_and_the_last_of_a_name_counts() -> None:
    found = after(Edits(env=("LD_PRELOAD=", "GPU=1")), Edits(env=("GPU=2",)))
    own = ["PATH=/bin", "LD_PRELOAD=./evil.so"]
    assert found["process"]["env"] == [*own, "LD_PRELOAD=", "GPU=2"]


def test_a_container_without_variables_or_a_process_gets_them() -> None:
    found = after(Edits(env=("A=1",)), config={"ociVersion": "1.2.0"})
    assert found["process"] == {"env": ["A=1"]}


def test_device_files_get_the_numbers_of_the_host_and_may_be_used() -> None:
    found = after(Edits(device_nodes=(DeviceNode("/dev/nvidia0", permissions="rw"),)))
    assert found["linux"]["devices"] == [
        {
            "path": "/dev/nvidia0",
            "type": "c",
            "major": 195,
            "minor": 0,
            "fileMode": 0o666,
            "uid": 1000,
        }
    ]
    assert found["linux"]["resources"]["devices"] == [
        {"allow": False, "access": "rwm"},
        {"allow": True, "type": "c", "major": 195, "minor": 0, "access": "rw"},
    ]


def test_numbers_of_the_spec_need_no_file_on_the_host() -> None:
    node = DeviceNode("/dev/nvidia-caps/nvidia-cap30", type="c", major=237, minor=30, uid=5, gid=6)
    found = after(Edits(device_nodes=(node,)))
    (device,) = found["linux"]["devices"]
    assert device == {
        "path": "/dev/nvidia-caps/nvidia-cap30",
        "type": "c",
        "major": 237,
        "minor": 30,
        "uid": 5,
        "gid": 6,
    }
    assert found["linux"]["resources"]["devices"][-1]["access"] == "rwm"


def test_a_device_file_elsewhere_on_the_host_replaces_one_at_its_path() -> None:
    config = copy.deepcopy(BARE)
    config["linux"]["devices"] = [{"path": "/dev/gpu", "type": "c", "major": 1, "minor": 1}]
    found = after(Edits(device_nodes=(DeviceNode("/dev/gpu", "/dev/nvidia0"),)), config=config)
    assert [one["major"] for one in found["linux"]["devices"]] == [195]


def test_a_device_file_that_is_not_there_fails_the_start() -> None:
    with pytest.raises(CdiError, match=r"/dev/nvidia7: there is none"):
        after(Edits(device_nodes=(DeviceNode("/dev/nvidia7"),)))
    with pytest.raises(CdiError, match="found type c, the spec says b"):
        after(Edits(device_nodes=(DeviceNode("/dev/nvidia0", type="b"),)))


def test_mounts_replace_those_at_their_path_and_are_ordered_by_depth() -> None:
    found = after(
        Edits(
            mounts=(
                Mount("/host/preload", "/etc/ld.so.preload", ("ro", "bind")),
                Mount("/host/dev", "/dev", type="bind"),
            )
        )
    )
    assert found["mounts"] == [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "source": "/host/dev", "type": "bind"},
        {
            "destination": "/etc/ld.so.preload",
            "source": "/host/preload",
            "options": ["ro", "bind"],
        },
    ]


def test_hooks_come_after_those_that_are_there_with_their_own_environment() -> None:
    config = copy.deepcopy(BARE)
    config["hooks"] = {"createContainer": [{"path": "/first"}]}
    hook = Hook("createContainer", "/bin/sh", ("sh", "-c", "true"), ("PATH=/bin",), 5)
    found = after(Edits(hooks=(hook, Hook("startContainer", "/ld.so"))), config=config)
    assert found["hooks"] == {
        "createContainer": [
            {"path": "/first"},
            {"path": "/bin/sh", "args": ["sh", "-c", "true"], "env": ["PATH=/bin"], "timeout": 5},
        ],
        "startContainer": [{"path": "/ld.so"}],
    }


def test_what_only_foreign_specs_have_is_put_in_too() -> None:
    found = after(
        Edits(
            net_devices=(NetDevice("ib0", "net1"),),
            additional_gids=(44, 44, 109),
            intel_rdt=IntelRdt(clos_id="gold"),
        )
    )
    assert found["linux"]["netDevices"] == {"ib0": {"name": "net1"}}
    assert found["linux"]["intelRdt"] == {"closID": "gold"}
    assert found["process"]["user"]["additionalGids"] == [44, 109]


def test_two_devices_of_one_spec_get_its_common_edits_once() -> None:
    hook = Hook("createContainer", "/bin/true", env=("PATH=/bin",))
    devices = tuple(cdi.Device(name, Edits(env=(f"{name.upper()}=1",))) for name in ("a", "b"))
    spec = cdi.Spec("0.5.0", "gpu.dragoon.dev/claim", devices, Edits(hooks=(hook,)))
    ids = [cdi.qualified(spec.kind, one.name) for one in devices]
    found = after(*edits_for([cdi.encode(spec), b"garbage"], ids))
    assert found["process"]["env"][-2:] == ["A=1", "B=1"]
    assert len(found["hooks"]["createContainer"]) == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "ociVersion"),
        ({"spec": {}}, "ociVersion"),
        ({"ociVersion": "1", "process": []}, "process: found"),
        ({"ociVersion": "1", "process": {"env": {}}}, "process.env: found {}, allowed is a list"),
        ({"ociVersion": "1", "mounts": "none"}, "mounts: found 'none'"),
        ({"ociVersion": "1", "linux": {"devices": {}}}, "linux.devices"),
    ],
)
def test_what_is_no_runtime_spec_is_refused_by_its_field(config: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        oci.apply(config, [Edits(env=("A=1",))], HOST.get)
    assert message in str(caught.value)


def without_empty(found: Any) -> Any:
    if isinstance(found, dict):
        pruned = {name: without_empty(value) for name, value in found.items()}
        return {name: value for name, value in pruned.items() if value not in (None, [], {})}
    return [without_empty(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize("case", CASES)
def test_what_the_library_makes_of_random_specs_is_made_here_too(case: dict[str, Any]) -> None:
    documents = [json.dumps(spec).encode() for spec in case["specs"]]
    found = oci.apply(case["before"], edits_for(documents, case["ids"]), HOST.get)
    assert without_empty(found) == case["after"]
