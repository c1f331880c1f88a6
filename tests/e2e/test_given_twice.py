"""What was given twice, with the real kube-scheduler: guarded, resolved, and nobody else is hurt.

kube-scheduler keeps devices in use as a set of names: without a rule on
the pool it gives the device to a stranger as soon as one of two holders lets go.
"""

import json
from typing import Any

import pytest

from testbed.bed import is_running
from testbed.objects import claim, claim_spec, container, pod
from testbed.waiting import until
from tests.e2e.gangs import Gangs, devices, exclusive, is_allocated

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Object = dict[str, Any]


def test_point_1_the_pool_stays_guarded_until_every_holder_is_gone(gangs: Gangs) -> None:
    node = gangs.nodes[0]
    gangs.holder("first", node, 1)
    (held,) = _claims_of(gangs, "first")
    _allocate_too(gangs, "late", held)

    until("the pool is guarded", lambda: _guards(gangs) == [f"{node}/gpu"])
    _clear(gangs, "late")
    gangs.template("stranger", claim_spec(1))
    gangs.bed.apply(_on(gangs, node, "stranger"))
    until(
        "kube-scheduler has tried the stranger",
        lambda: gangs.bed.unschedulable("stranger", gangs.namespace),
    )
    assert _guards(gangs)
    assert exclusive(gangs.bed.items("resourceclaims", "-n", gangs.namespace))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "first", "--wait=false")
    until("the guard goes with the last holder", lambda: not _guards(gangs))
    gangs.bed.running("stranger", gangs.namespace)


def test_point_1_a_bare_loser_is_marked_and_left(gangs: Gangs) -> None:
    node = gangs.nodes[0]
    gangs.holder("first", node, 1)
    (held,) = _claims_of(gangs, "first")
    _allocate_too(gangs, "late", held)
    until("the pool is guarded", lambda: _guards(gangs))
    loser = pod("loser", gangs.namespace, container("main", "late"), claims={"late": "late"})
    gangs.bed.apply(loser)

    def marked() -> bool:
        found = gangs.bed.get("pod", "loser", gangs.namespace) or {}
        annotations = (found.get("metadata") or {}).get("annotations") or {}
        return "dragoon.dev/given-twice" in annotations

    until("the loser is marked", marked)
    first = gangs.bed.get("pod", "first", gangs.namespace)
    assert first
    assert is_running(first)
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "loser", "--wait=false")
    gangs.bed.gone("pod", "loser", gangs.namespace)
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "first", "--wait=false")
    until("the guard goes with the last holder", lambda: not _guards(gangs))


def test_nodes_for_gangs_only_take_gangs_and_nobody_else(gangs: Gangs) -> None:
    node = gangs.nodes[0]
    gangs.bed.kubectl("label", "node", node, "dragoon.dev/gang-only=true")
    try:
        until("its devices are tainted", lambda: _is_reserved(gangs, node))
        gangs.template("stranger", claim_spec(1))
        gangs.bed.apply(_on(gangs, node, "stranger"))
        until(
            "kube-scheduler has tried", lambda: gangs.bed.unschedulable("stranger", gangs.namespace)
        )
        gangs.template("eight", claim_spec(8))
        gangs.job("train", 2, "eight")
        gangs.running("train", 2)
        assert not any(map(is_allocated, _claims_of(gangs, "stranger")))
        gangs.ends("train")
    finally:
        gangs.bed.kubectl("label", "node", node, "dragoon.dev/gang-only-")
    gangs.bed.running("stranger", gangs.namespace)


def _on(gangs: Gangs, node: str, name: str) -> Object:
    """A bare pod with a claim from the template of its name, on this node."""
    selector = {"kubernetes.io/hostname": node}
    member = container("main", name)
    return pod(name, gangs.namespace, member, templates={name: name}, nodeSelector=selector)


def _claims_of(gangs: Gangs, name: str) -> list[Object]:
    return gangs.bed.claims_of(name, gangs.namespace)


def _allocate_too(gangs: Gangs, name: str, held: Object) -> None:
    """Another claim is given the same devices, as a write that comes late would."""
    assert list(devices(held))
    made = claim(name, gangs.namespace, claim_spec(1))
    made["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    gangs.bed.apply(made)
    _patch(gangs, name, {"allocation": held["status"]["allocation"]})


def _clear(gangs: Gangs, name: str) -> None:
    _patch(gangs, name, {"allocation": None})


def _patch(gangs: Gangs, name: str, status: Object) -> None:
    target = ("resourceclaim", name, "-n", gangs.namespace)
    body = json.dumps({"status": status})
    gangs.bed.kubectl("patch", *target, "--subresource=status", "--type=merge", "-p", body)


def _guards(gangs: Gangs) -> list[str]:
    return [
        one["spec"]["deviceSelector"]["pool"]
        for one in gangs.bed.items("devicetaintrules")
        if (one["metadata"].get("labels") or {}).get("dragoon.dev/rule") == "damage"
    ]


def _is_reserved(gangs: Gangs, node: str) -> bool:
    found = [
        one for slice_ in gangs.bed.slices(node) for one in slice_["spec"].get("devices") or ()
    ]
    keys = [{taint["key"] for taint in one.get("taints") or ()} for one in found]
    return bool(keys) and all("dragoon.dev/gang-only" in one for one in keys)
