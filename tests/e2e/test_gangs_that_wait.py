"""Gangs that wait on a real cluster: kube-scheduler's pods cannot starve one; room is made for one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.objects import claim_spec, container, pod
from testbed.waiting import until
from tests.e2e.gangs import PAIR, Gangs, exclusive
from tests.e2e.standing import a_controller

pytestmark = [pytest.mark.e2e, pytest.mark.gangs, pytest.mark.timeout(900)]

_SHORT = "sleep 4"
_STREAM = 400
_GPUS = 16


@pytest.fixture
def quick(gangs: Gangs, tmp_path: Path) -> Iterator[Gangs]:
    """A controller that keeps devices for a gang almost at once, in place of the usual one."""
    gangs.controller.stop()
    with a_controller(gangs.bed, tmp_path, "--reserve-after-seconds", "2") as process:
        yield Gangs(gangs.bed, process, gangs.namespace)
    gangs.controller.start_and_wait()


def stream(gangs: Gangs) -> None:
    """A Job of many short pods with a GPU each: more at once than there are GPUs."""
    gangs.template("single", claim_spec(1))
    made = pod(
        "stream",
        gangs.namespace,
        container("main", "single", script=_SHORT),
        templates={"single": "single"},
    )
    gangs.bed.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "stream", "namespace": gangs.namespace},
            "spec": {
                "completions": _STREAM,
                "parallelism": _GPUS + 8,
                "template": {"spec": {**made["spec"], "restartPolicy": "Never"}},
            },
        }
    )


def job_status(gangs: Gangs, name: str) -> dict[str, Any]:
    found = gangs.bed.get("job", name, gangs.namespace)
    return {} if found is None else found.get("status") or {}


def test_a_stream_of_small_pods_cannot_starve_a_gang(quick: Gangs) -> None:
    stream(quick)
    until(
        "the first pods of the stream have ended",
        lambda: job_status(quick, "stream").get("succeeded", 0) > 0,
    )
    quick.template("pair", PAIR)
    quick.job("large", 6, "pair")

    def reserved() -> bool:
        found = quick.gang("large") or {}
        return bool((found.get("status") or {}).get("reservation"))

    until("devices in use are kept for the gang", reserved)
    quick.running("large", 6, within=240)
    status = job_status(quick, "stream")
    assert status.get("succeeded", 0) < _STREAM
    assert exclusive(quick.claims("large"))
    until("nothing is kept any more", lambda: not reserved())
    quick.bed.kubectl("delete", "job", "-n", quick.namespace, "stream", "--wait=false")
    quick.ends("large")


@pytest.fixture
def important(gangs: Gangs) -> Iterator[str]:
    """A PriorityClass whose pods evict nobody by themselves."""
    name = f"important-{gangs.namespace}"
    gangs.bed.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 1000,
            "preemptionPolicy": "Never",
        }
    )
    yield name
    gangs.bed.kubectl("delete", "priorityclass", name)


def test_room_is_made_by_evicting_the_fewest_pods_that_are_enough(
    gangs: Gangs, important: str
) -> None:
    first, second = gangs.nodes
    for number in range(8):
        gangs.holder(f"small-{number}", first, 1)
    gangs.holder("half", second, 4)
    gangs.holder("other-half", second, 4)
    gangs.template("eight", claim_spec(8))
    gangs.member(
        "high-0",
        "high",
        1,
        container("main", "eight"),
        templates={"eight": "eight"},
        priorityClassName=important,
    )
    gangs.waits("high", "NoRoom")
    command = ("gangs", "make-room", "gang/high", "-n", gangs.namespace)
    told = gangs.controller.run(*command)
    assert "it fits when 2 pods of lower priority (at most 0) leave" in told
    found = json.loads(gangs.controller.run(*command, "--evict", "-o", "json"))
    assert {one["pod"] for one in found["evictions"]} == {
        f"{gangs.namespace}/half",
        f"{gangs.namespace}/other-half",
    }
    assert not any(one["refusal"] for one in found["evictions"])
    (member,) = gangs.running("high", 1)
    assert member["spec"]["nodeName"] == second
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "high-0", "--wait=false")
    gangs.left_nothing("high")
