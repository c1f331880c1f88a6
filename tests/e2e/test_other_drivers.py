"""Devices that are not ours in gangs: counters, attributes and topology of a driver nobody knows.

The allocator is generic, so whatever a driver publishes is planned along, together with GPUs.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from dragoon.api import gang
from testbed.bed import Bed
from testbed.objects import CLASS, SAME_DOMAIN, claim_spec, container, pod
from testbed.waiting import until
from tests.e2e.gangs import Gangs, Object, devices, exclusive, is_allocated
from tests.e2e.tpu import CHIP, DRIVER, HALF, PCIE_ROOT, Tpus, chips_of, request, tpus

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_MESH = f"{DRIVER}/mesh"


@pytest.fixture(scope="module")
def driver(bed: Bed) -> Iterator[Tpus]:
    with tpus(bed) as made:
        yield made


def test_members_get_devices_of_both_drivers_together_or_none(gangs: Gangs, driver: Tpus) -> None:
    gangs.template("pair", claim_spec(2, constraints=(SAME_DOMAIN,)))
    gangs.template("half", _claim(request(HALF)))
    _holder(gangs, "extra", gangs.nodes[1])
    gangs.job("mixed", 4, "pair", "half")
    gangs.waits("mixed", "NoRoom", "3 of 4")
    assert not any(map(is_allocated, gangs.claims("mixed")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "extra", "--wait=false")
    gangs.running("mixed", 4)
    claims = gangs.claims("mixed")
    assert exclusive(claims)
    theirs = [one for one in claims if _drivers(one) == {DRIVER}]
    assert len(theirs) == 4
    assert _no_chip_twice(theirs)
    assert {one["metadata"]["uid"] for one in theirs} <= driver.prepared
    assert not {one["metadata"]["uid"] for one in claims if one not in theirs} & driver.prepared
    gangs.ends("mixed")
    until("the other driver was told, too", lambda: not driver.prepared)


def test_a_gpu_and_a_device_of_another_driver_below_one_pcie_root(
    gangs: Gangs, driver: Tpus
) -> None:
    """The shape of manifest m14: one claim, two drivers, and an attribute that both publish."""
    both = _claim(
        {"name": "gpu", "exactly": {"deviceClassName": CLASS}},
        request(CHIP),
        constraints=[{"requests": ["gpu", "tpu"], "matchAttribute": PCIE_ROOT}],
    )
    gangs.template("near", both)
    gangs.job("near", 8, "near")
    members = gangs.running("near", 8)
    claims = gangs.claims("near")
    assert exclusive(claims)
    roots = _roots(gangs)
    for one in claims:
        assert _drivers(one) == {DRIVER, "gpu.dragoon.dev"}
        found = {roots[device] for device in devices(one)}
        assert len(found) == 1
        assert found != {None}
        assert one["metadata"]["uid"] in driver.prepared
    name = members[0]["metadata"]["name"]
    (own,) = (one for one in claims if one["metadata"]["ownerReferences"][0]["name"] == name)
    ours = {device for where, device in devices(own) if not where.startswith(DRIVER)}
    assert gangs.bed.devices_seen(name, gangs.namespace, "main") == (ours, ours)
    gangs.ends("near")


def test_members_agree_on_an_attribute_of_another_driver(gangs: Gangs, driver: Tpus) -> None:
    """Each node has room for one: without the level they would run on two."""
    gangs.template("half", _claim(request(HALF)))
    for name, node in zip(("one", "two"), gangs.nodes, strict=True):
        _holder(gangs, name, node)
    gangs.bed.apply(
        {
            "apiVersion": gang.API_VERSION,
            "kind": gang.KIND,
            "metadata": {"name": "meshed", "namespace": gangs.namespace},
            "spec": {"size": 2, "topology": {"required": [{"attribute": _MESH}]}},
        }
    )
    for name in ("left", "right"):
        gangs.member(name, "meshed", 2, container("main", "half"), templates={"half": "half"})
    gangs.waits("meshed", "NoRoom", "1 of 2 members fit", "required topology", "counter chip-")
    assert not any(map(is_allocated, gangs.claims("meshed")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "two", "--wait=false")
    members = gangs.running("meshed", 2)
    assert {one["spec"]["nodeName"] for one in members} == {gangs.nodes[1]}
    assert _no_chip_twice(gangs.claims("meshed"))
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "left", "right", "--wait=false")
    gangs.bed.kubectl("delete", "gang", "-n", gangs.namespace, "meshed", "--wait=false")
    gangs.left_nothing("meshed")


def _claim(*requests: Object, **more: object) -> Object:
    return {"devices": {"requests": list(requests), **more}}


def _holder(gangs: Gangs, name: str, node: str) -> None:
    """A pod outside of the gang with one chip of a node, so that only one half of it is left."""
    gangs.template(name, _claim(request(CHIP)))
    gangs.bed.apply(
        pod(
            name,
            gangs.namespace,
            container("main", name),
            templates={name: name},
            nodeSelector={"kubernetes.io/hostname": node},
        )
    )
    gangs.bed.running(name, gangs.namespace)


def _drivers(claim: Object) -> set[str]:
    return {where.partition("/")[0] for where, _ in devices(claim)}


def _no_chip_twice(claims: list[Object]) -> bool:
    held = Counter(
        (where, chip) for one in claims for where, name in devices(one) for chip in chips_of(name)
    )
    return set(held.values()) == {1}


def _roots(gangs: Gangs) -> dict[tuple[str, str], str | None]:
    """The PCIe root of every device of every driver, as `devices` names them."""
    return {
        (f"{one['spec']['driver']}/{one['spec']['pool']['name']}", device["name"]): (
            device["attributes"].get(PCIE_ROOT, {}).get("string")
        )
        for one in gangs.bed.items("resourceslices")
        for device in one["spec"].get("devices") or ()
    }
