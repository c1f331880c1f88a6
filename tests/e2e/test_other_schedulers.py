"""Pods that kube-scheduler never sees: bound by another scheduler, or pinned by spec.nodeName (C48).

YuniKorn's shim binds with a plain POST to `pods/binding` and writes nothing into claims, and so does
this test in its place. Without our allocation the kubelet keeps such a pod waiting for ever.
"""

import json
import time
from typing import Any

import pytest

from dragoon.api import gang
from dragoon.gang.protocol.executing import ANNOTATION_NUDGED
from testbed.objects import claim, claim_spec, container, pod
from testbed.waiting import until
from tests.e2e.gangs import Gangs, condition, devices, exclusive, is_allocated, is_gated

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Object = dict[str, Any]

_OTHER = "yunikorn"
_REFUSED = "FailedPrepareDynamicResources"
_TOLD = "NotAllocated"


def test_c48_members_that_another_scheduler_binds_run_with_our_allocation(gangs: Gangs) -> None:
    gangs.template("pair", claim_spec(2))
    for name in ("left", "right"):
        _member(gangs, name, "theirs", 2, schedulerName=_OTHER)
    until("both are ungated", lambda: len(_free(gangs, "theirs")) == 2)
    claims = gangs.claims("theirs")
    assert all(map(is_allocated, claims))
    assert exclusive(claims)
    assert not any(one["spec"].get("nodeName") for one in gangs.pods("theirs"))

    for one in gangs.pods("theirs"):
        _bind(gangs, one["metadata"]["name"], _node_of(gangs, one))
    for one in gangs.running("theirs", 2):
        _sees_its_own(gangs, one)
    assert gangs.reaches("theirs", "Running")["status"]["members"]["summary"] == "2/2"
    _ends(gangs, "theirs", "left", "right")


def test_c48_without_our_allocation_its_kubelet_refuses_the_pod_and_it_is_told_why(
    gangs: Gangs,
) -> None:
    gangs.template("pair", claim_spec(2))
    gangs.bed.apply(_pod(gangs, "alone", schedulerName=_OTHER))
    _claim_is_made(gangs, "alone")
    _bind(gangs, "alone", gangs.nodes[0])

    _is_refused_and_told(gangs, "alone", _OTHER)


def test_c48_m18_a_member_that_names_its_node_is_allocated_there(gangs: Gangs) -> None:
    """Together with one that kube-scheduler places: all or nothing, as ever."""
    first = gangs.nodes[0]
    gangs.template("pair", claim_spec(2))
    gangs.holder("full", first, 7)
    _member(gangs, "pinned", "mixed", 2, nodeName=first)
    _member(gangs, "free", "mixed", 2)
    waiting = gangs.waits("mixed", "NoRoom")
    assert condition(waiting, "Ungated")["status"] == "False"
    until("its kubelet has refused it", lambda: _events(gangs, "pinned", _REFUSED))
    assert not any(map(is_allocated, gangs.claims("mixed")))

    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "full", "--wait=false")
    gangs.bed.gone("pod", "full", gangs.namespace)
    started = time.monotonic()
    members = gangs.running("mixed", 2)
    gangs.bed.figures.append(
        f"a pinned member runs {time.monotonic() - started:.1f} s after its devices came free"
    )
    (pinned,) = (one for one in members if one["metadata"]["name"] == "pinned")
    assert pinned["spec"]["nodeName"] == first
    assert ANNOTATION_NUDGED in pinned["metadata"]["annotations"]
    for one in members:
        _sees_its_own(gangs, one)
    assert exclusive(gangs.claims("mixed"))
    _ends(gangs, "mixed", "pinned", "free")


def test_c48_a_pinned_pod_outside_of_gangs_is_refused_and_told_why(gangs: Gangs) -> None:
    gangs.template("pair", claim_spec(2))
    gangs.bed.apply(_pod(gangs, "alone", nodeName=gangs.nodes[0]))

    _is_refused_and_told(gangs, "alone", "spec.nodeName")


def test_c48_a_pinned_pod_whose_claim_is_on_another_node_is_told_so(gangs: Gangs) -> None:
    first, second = gangs.nodes
    gangs.bed.apply(claim("common", gangs.namespace, claim_spec(1)))
    there = {"kubernetes.io/hostname": first}
    gangs.bed.apply(
        pod(
            "owner",
            gangs.namespace,
            container("main", "gpu"),
            claims={"gpu": "common"},
            nodeSelector=there,
        )
    )
    gangs.bed.running("owner", gangs.namespace)
    gangs.bed.apply(
        pod(
            "lost",
            gangs.namespace,
            container("main", "gpu"),
            claims={"gpu": "common"},
            nodeName=second,
        )
    )

    def told_where() -> bool:
        """At first it may say that the claim is not reserved for the pod."""
        return any(f"{first}/gpu" in one for one in _events(gangs, "lost", _REFUSED))

    until("its kubelet has refused it and said where the claim is", told_where)
    told = _explained(gangs, "lost")
    assert told["state"] == "allocated"
    assert told["allocated"][0]["nodes"] == [first]


def _pod(gangs: Gangs, name: str, **spec: Any) -> Object:
    return pod(name, gangs.namespace, container("main", "pair"), templates={"pair": "pair"}, **spec)


def _member(gangs: Gangs, name: str, group: str, size: int, **spec: Any) -> None:
    gangs.member(name, group, size, container("main", "pair"), templates={"pair": "pair"}, **spec)


def _free(gangs: Gangs, group: str) -> list[Object]:
    """The members that were let go."""
    return [one for one in gangs.pods(group) if not is_gated(one)]


def _bind(gangs: Gangs, name: str, node: str) -> None:
    """What a scheduler without any idea of claims does."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": gangs.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/{gangs.namespace}/pods/{name}/binding"
    gangs.bed.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


def _node_of(gangs: Gangs, member: Object) -> str:
    """The node that a member's affinity pins it to: other schedulers keep to that, too."""
    affinity = member["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    (node,) = field["values"]
    assert node in gangs.nodes
    return str(node)


def _claim_is_made(gangs: Gangs, name: str) -> None:
    until(f"the claim of pod {name} is made", lambda: gangs.bed.claims_of(name, gangs.namespace))


def _sees_its_own(gangs: Gangs, member: Object) -> None:
    (made,) = member["status"]["resourceClaimStatuses"]
    found = gangs.bed.get("resourceclaim", made["resourceClaimName"], gangs.namespace)
    assert found
    own = {name for _, name in devices(found)}
    assert len(own) == 2
    name = member["metadata"]["name"]
    assert gangs.bed.devices_seen(name, gangs.namespace, "main") == (own, own)


def _is_refused_and_told(gangs: Gangs, name: str, by: str) -> None:
    """By the kubelet, and by our controller, and by `dragoon explain`."""
    until(f"the kubelet has refused pod {name}", lambda: _events(gangs, name, _REFUSED))
    (told, *_) = until(f"pod {name} is told why", lambda: _events(gangs, name, _TOLD))
    assert told.startswith(f"{by} put the pod on node {gangs.nodes[0]}")
    assert gang.LABEL in told
    found = gangs.bed.get("pod", name, gangs.namespace)
    assert found
    assert found["status"]["phase"] == "Pending"
    assert _explained(gangs, name, exit_code=1)["state"] == "stranded"


def _events(gangs: Gangs, name: str, reason: str) -> list[str]:
    """The messages of a pod's events with this reason."""
    about = f"involvedObject.name={name},reason={reason}"
    found = gangs.bed.items("events", "-n", gangs.namespace, "--field-selector", about)
    return [one["message"] for one in found]


def _explained(gangs: Gangs, name: str, *, exit_code: int = 0) -> Object:
    told = gangs.controller.run(
        *("explain", f"pod/{name}", "-n", gangs.namespace, "-o", "json"), exit_code=exit_code
    )
    found: Object = json.loads(told)
    return found


def _ends(gangs: Gangs, group: str, *names: str) -> None:
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, *names, "--wait=false")
    gangs.left_nothing(group)
