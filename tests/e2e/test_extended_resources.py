"""Pods that ask for GPUs by number, as for a device plugin (KEP-5004), on the real cluster.

kube-scheduler makes the claim of such a pod itself, while it schedules it, and says in the pod's
status which container has which request (case C49). So such a pod cannot be a member of a gang.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dragoon.api.names import TAINT_OTHER_OWNER
from testbed import version
from testbed.bed import Bed
from testbed.objects import CLASS, container, pod
from testbed.waiting import until
from tests.e2e.gangs import Gangs, condition

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not version.at_least("1.36.0"), reason="off by default before 1.36"),
]

Object = dict[str, Any]

_COUNTED = "nvidia.com/gpu"
_IMPLICIT = f"deviceclass.resource.kubernetes.io/{CLASS}"


@pytest.fixture(scope="module")
def counted(bed: Bed) -> Iterator[str]:
    """The name of a class by which GPUs are asked for by number."""
    found = bed.get("deviceclass", CLASS)
    assert found
    name = "counted-gpus"
    bed.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {**found["spec"], "extendedResourceName": _COUNTED},
        }
    )
    yield name
    bed.kubectl("delete", "deviceclass", name)


def test_each_container_sees_the_gpus_that_it_counted(
    bed: Bed, namespace: str, counted: str
) -> None:
    bed.apply(
        pod(
            "work",
            namespace,
            asking("one", _COUNTED, 1),
            asking("two", _COUNTED, 2),
            container("none"),
        )
    )
    bed.running("work", namespace)
    claim = made_for(bed, namespace, "work")
    assert {one["exactly"]["deviceClassName"] for one in claim["spec"]["devices"]["requests"]} == {
        counted
    }
    by_container = given(bed, namespace, "work")
    assert {name: len(found) for name, found in by_container.items()} == {"one": 1, "two": 2}
    for name, devices in by_container.items():
        assert bed.devices_seen("work", namespace, name) == (devices, devices)
    assert not by_container["one"] & by_container["two"]
    assert bed.devices_seen("work", namespace, "none") == (set(), set())


def test_every_class_can_be_counted_by_its_own_name(bed: Bed, namespace: str) -> None:
    bed.apply(pod("work", namespace, asking("main", _IMPLICIT, 3)))
    bed.running("work", namespace)
    (devices,) = given(bed, namespace, "work").values()
    assert len(devices) == 3
    assert bed.devices_seen("work", namespace, "main") == (devices, devices)


def test_c49_counted_gpus_are_held_once_and_go_with_the_pod(
    bed: Bed, namespace: str, counted: str
) -> None:
    """The claim has no name that could be guessed: the pod's status names it."""
    bed.apply(*(pod(f"p{number}", namespace, asking("main", _COUNTED, 8)) for number in range(3)))
    until("two of three run, one on each node", lambda: len(_running(bed, namespace)) == 2)
    waiting = until("the third was tried", lambda: _unschedulable(bed, namespace))
    assert len(waiting) == 1
    claims = bed.items("resourceclaims", "-n", namespace)
    held = [
        (result["pool"], result["device"])
        for claim in claims
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(held) == len(set(held)) == 16

    first = _running(bed, namespace)[0]
    bed.kubectl("delete", "pod", "-n", namespace, first, "--wait=false")
    bed.running(waiting[0], namespace)


def test_c52_where_a_device_plugin_offers_the_name_it_is_asked_and_our_devices_are_kept_back(
    bed: Bed, namespace: str, counted: str
) -> None:
    """Two owners of one card: none of them counts it twice, and going back leaves nothing behind."""
    node = max(bed.plugins)
    here = {"kubernetes.io/hostname": node}
    _offer(bed, node, 8)
    try:
        until("our devices are tainted", lambda: _tainted(bed, node) == [True] * 8)
        bed.apply(pod("theirs", namespace, asking("main", _COUNTED, 1), nodeSelector=here))
        theirs = bed.running("theirs", namespace)
        assert "extendedResourceClaimStatus" not in theirs["status"]
        assert not bed.items("resourceclaims", "-n", namespace)
    finally:
        bed.kubectl("delete", "pod", "-n", namespace, "--all", "--wait=false")
        _offer(bed, node, 0)
    until("they are free again", lambda: _tainted(bed, node) == [False] * 8)
    assert len(bed.slices(node)) == 1
    bed.apply(pod("ours", namespace, asking("main", _COUNTED, 1), nodeSelector=here))
    bed.running("ours", namespace)
    (devices,) = given(bed, namespace, "ours").values()
    assert bed.devices_seen("ours", namespace, "main") == (devices, devices)


def test_a_counted_member_is_refused_with_the_template_that_it_needs(
    gangs: Gangs, counted: str
) -> None:
    gangs.member("counts", "train", 1, asking("main", _COUNTED, 2))
    found = gangs.waits("train", "Refused")
    assert _COUNTED in condition(found, "Placed")["message"]
    assert not gangs.bed.items("resourceclaims", "-n", gangs.namespace)

    told = gangs.controller.run(
        *("explain", "gang/train", "-n", gangs.namespace, "-o", "json"), exit_code=1
    )
    offered = json.loads(told)["gang"]["instead"]
    template = yaml.safe_load(offered)
    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"] == {
        "deviceClassName": counted,
        "count": 2,
    }
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "counts", "--wait=false")
    gangs.left_nothing("train")
    gangs.bed.kubectl("apply", "-f", "-", stdin=offered)
    name = template["metadata"]["name"]
    gangs.member("claims", "train", 1, container("main", name), templates={name: name})
    gangs.running("train", 1)
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "claims", "--wait=false")
    gangs.left_nothing("train")


def asking(name: str, resource: str, count: int) -> Object:
    """A container that asks for so many of an extended resource."""
    made = container(name)
    made["resources"] = {"limits": {resource: str(count)}}
    return made


def made_for(bed: Bed, namespace: str, name: str) -> Object:
    """The claim that kube-scheduler made for a pod."""
    found = bed.get("pod", name, namespace)
    assert found
    claim = bed.get(
        "resourceclaim",
        found["status"]["extendedResourceClaimStatus"]["resourceClaimName"],
        namespace,
    )
    assert claim
    return claim


def given(bed: Bed, namespace: str, name: str) -> dict[str, set[str]]:
    """The devices of each container, by what the pod's status says of its requests."""
    found = bed.get("pod", name, namespace)
    assert found
    results = made_for(bed, namespace, name)["status"]["allocation"]["devices"]["results"]
    devices: dict[str, set[str]] = {}
    for mapping in found["status"]["extendedResourceClaimStatus"]["requestMappings"]:
        devices.setdefault(mapping["containerName"], set()).update(
            result["device"] for result in results if result["request"] == mapping["requestName"]
        )
    return devices


def _offer(bed: Bed, node: str, count: int) -> None:
    """What a device plugin would do: so many of the resource on the node, none with 0."""
    key = _COUNTED.replace("/", "~1")
    change = {"op": "add", "value": str(count)} if count else {"op": "remove"}
    patch = [{**change, "path": f"/status/{part}/{key}"} for part in ("capacity", "allocatable")]
    bed.kubectl(
        "patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(patch)
    )


def _tainted(bed: Bed, node: str) -> list[bool]:
    """Of each device of a node, whether it says that it has another owner."""
    return [
        any(one["key"] == TAINT_OTHER_OWNER for one in device.get("taints") or ())
        for part in bed.slices(node)
        for device in part["spec"].get("devices") or ()
    ]


def _running(bed: Bed, namespace: str) -> list[str]:
    found = bed.items("pods", "-n", namespace)
    return [
        one["metadata"]["name"] for one in found if one.get("status", {}).get("phase") == "Running"
    ]


def _unschedulable(bed: Bed, namespace: str) -> list[str]:
    found = bed.items("pods", "-n", namespace)
    return [
        one["metadata"]["name"]
        for one in found
        for condition in one.get("status", {}).get("conditions") or ()
        if condition.get("reason") == "Unschedulable"
    ]
