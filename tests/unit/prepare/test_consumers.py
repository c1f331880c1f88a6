"""Who still uses a claim: never in the way of a rightful unprepare."""

from typing import Any

import pytest

from dragoon.prepare.consumers import running_users
from tests.unit.prepare.scene import NODE, ended, running

CLAIM = {
    "metadata": {"name": "c", "namespace": "team-a", "uid": "u"},
    "status": {
        "reservedFor": [
            {"resource": "pods", "name": "p", "uid": "p-1"},
            {"resource": "podgroups", "name": "g", "uid": "p-2"},
        ]
    },
}


def pod(uid: str = "p-1", *, node: str = NODE, deleted: bool = False, **status: Any) -> Any:
    meta = {"name": "p", "namespace": "team-a", "uid": uid}
    if deleted:
        meta["deletionTimestamp"] = "2026-11-29T00:00:00Z"
    status = {"phase": "Running", "containerStatuses": [running()]} | status
    return {"metadata": meta, "spec": {"nodeName": node}, "status": status}


WAITING = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}


@pytest.mark.parametrize(
    "user",
    [
        pod(),
        pod(containerStatuses=[ended(), running()]),
        pod(containerStatuses=[WAITING], initContainerStatuses=[running()]),
        pod(containerStatuses=[ended()], ephemeralContainerStatuses=[running()]),
        pod(phase="Pending", containerStatuses=[], initContainerStatuses=[running()]),
    ],
)
def test_a_pod_here_with_a_running_container_uses_its_claim(user: Any) -> None:
    assert running_users(CLAIM, "u", NODE, [user]) == ("team-a/p",)


@pytest.mark.parametrize(
    "bystander",
    [
        pod("p-9"),
        pod("p-2"),
        pod(node="node-b"),
        pod(deleted=True),
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        # The kubelet unprepares before it says that a pod has finished or was evicted: what it has
        # said by then is that the containers have ended, whatever the restart policy.
        pod(containerStatuses=[ended()]),
        pod(containerStatuses=[WAITING]),
        pod(containerStatuses=None),
    ],
)
def test_other_pods_and_pods_that_end_do_not(bystander: Any) -> None:
    assert running_users(CLAIM, "u", NODE, [bystander]) == ()


def test_another_claim_of_the_same_name_has_no_users_of_ours() -> None:
    assert running_users(CLAIM, "other", NODE, [pod()]) == ()
