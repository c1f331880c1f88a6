"""Gangs when the controller dies, the scheduler is away, or the planned node fills up meanwhile."""

import signal
from collections.abc import Iterable
from typing import Any

import pytest

from dragoon.api.gang import Phase
from testbed.bed import Object, is_running
from testbed.objects import container, pod
from testbed.serving import create_namespace
from testbed.waiting import until
from tests.e2e.gangs import (
    PAIR,
    Gangs,
    allocations,
    condition,
    is_allocated,
    is_gated,
    steadily,
)

pytestmark = [pytest.mark.e2e, pytest.mark.gangs, pytest.mark.timeout(900)]

_AFTER_COMMIT = (Phase.BINDING, Phase.RUNNING)


def test_cpu_that_goes_between_commit_and_ungate_costs_no_devices(gangs: Gangs) -> None:
    """The controller is stopped in the middle; its nodes fill up; then it goes on.

    kube-scheduler is away meanwhile: nobody that was already set free takes the CPU first.
    """
    gangs.template("pair", PAIR)
    gangs.bed.cluster.stop("kube-scheduler")
    try:
        gangs.job("train", 4, "pair", cpu=_share_of_a_node(gangs))
        until("claims are allocated", lambda: all(map(is_allocated, _four_claims(gangs))))
        gangs.controller.send(signal.SIGSTOP)
        before = allocations(gangs.claims("train"))
        free = _free(gangs.pods("train"))
        held = 4 - len(free)
        gangs.bed.figures.append(f"CPU gone after the commit: {held} of 4 members still gated")
        _fill(gangs, before)
    finally:
        gangs.controller.send(signal.SIGCONT)
        gangs.bed.cluster.start("kube-scheduler")
    _never_moved_until_running(gangs, before, free)
    gangs.ends("train")


def test_cpu_that_goes_between_ungate_and_bind_costs_no_devices(gangs: Gangs) -> None:
    """kube-scheduler is away while the members are set free; their nodes fill up; it comes back."""
    gangs.template("pair", PAIR)
    gangs.bed.cluster.stop("kube-scheduler")
    try:
        gangs.job("train", 4, "pair", cpu=_share_of_a_node(gangs))
        until("no member is gated any more", lambda: _four_free(gangs))
        before = allocations(gangs.claims("train"))
        assert len(before) == 4
        _fill(gangs, before)
    finally:
        gangs.bed.cluster.start("kube-scheduler")
    _never_moved_until_running(gangs, before, _free(gangs.pods("train")))
    gangs.ends("train")


def test_without_a_controller_pods_finish_and_everything_goes(gangs: Gangs) -> None:
    gangs.template("pair", PAIR)
    gangs.job("train", 2, "pair")
    gangs.running("train", 2)
    gangs.controller.kill()
    for made in gangs.pods("train"):
        gangs.bed.end_container(made["metadata"]["name"], gangs.namespace)

    def finished() -> bool:
        return all(one["status"]["phase"] == "Succeeded" for one in gangs.pods("train"))

    until("the pods have finished", finished)
    until("their claims are gone", lambda: not gangs.claims("train"))
    gangs.bed.kubectl("delete", "namespace", gangs.namespace, "--wait=false")
    gangs.bed.gone("namespace", gangs.namespace, "")
    gangs.controller.start_and_wait()
    until("the rules of the gang that is gone are swept", lambda: not gangs.rules())
    create_namespace(gangs.bed.cluster, gangs.namespace)


def test_release_all_after_a_death_between_commit_and_bind_leaves_nothing(gangs: Gangs) -> None:
    gangs.template("pair", PAIR)
    gangs.bed.cluster.stop("kube-scheduler")
    try:
        gangs.job("train", 4, "pair")
        until("claims are allocated", lambda: all(map(is_allocated, _four_claims(gangs))))
        gangs.controller.kill()
        assert gangs.rules()
        gangs.controller.run("gangs", "release", "--all")
        assert not gangs.rules()
        assert not any(map(is_gated, gangs.pods("train")))
    finally:
        gangs.bed.cluster.start("kube-scheduler")
    gangs.bed.kubectl("delete", "namespace", gangs.namespace, "--wait=false")
    gangs.bed.gone("namespace", gangs.namespace, "")
    create_namespace(gangs.bed.cluster, gangs.namespace)


def test_a_finished_gang_is_written_to_no_more(gangs: Gangs) -> None:
    """A consumer that is not a pod makes the claim controller write for ever."""
    gangs.template("pair", PAIR)
    gangs.job("train", 2, "pair")
    for made in gangs.running("train", 2):
        gangs.bed.end_container(made["metadata"]["name"], gangs.namespace)
    gangs.reaches("train", Phase.FINISHED)
    until("no rule is left", lambda: not gangs.rules())
    # Its plan goes after its rules, and then it says so.
    until("it has no plan any more", lambda: _has_no_plan(gangs))
    until("their claims are gone", lambda: not gangs.claims("train"))
    # The Job controller counts them last; it keeps a finalizer on each until then.
    until("the Job has counted its pods", lambda: not any(map(_is_tracked, gangs.pods("train"))))
    # Where that comes after a claim has gone, the claim controller of 1.37 makes one more for the
    # ended pod, writes its name into the pod, and deletes it again.
    written = [_written_meanwhile(gangs, "second"), _written_meanwhile(gangs, "third")]
    assert not [one for one in written if "by dragoon" in str(one)]
    assert {} in written, written
    gangs.ends("train")


def _written_meanwhile(gangs: Gangs, other: str) -> dict[str, tuple[str | None, str | None]]:
    """What of the gang is written while another one comes and goes: its versions before and after."""
    before = _versions(gangs)
    gangs.job(other, 2, "pair")
    gangs.running(other, 2)
    gangs.ends(other)
    after = _versions(gangs)
    return {
        name: (before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def test_a_killed_controller_is_continued_wherever_it_was(gangs: Gangs) -> None:
    gangs.template("pair", PAIR)
    for number, phase in enumerate(("Fencing", "Committing", "Binding")):
        name = f"train-{number}"
        gangs.job(name, 4, "pair")
        gangs.reaches(name, phase, *_AFTER_COMMIT)
        gangs.controller.kill()
        gangs.controller.start_and_wait()
        gangs.running(name, 4)
        gangs.ends(name)


def _share_of_a_node(gangs: Gangs) -> str:
    """So much CPU that four members take most of the nodes, and fit."""
    return f"{gangs.milli_cpu(gangs.nodes[0]) * 4 // 10 // 2}m"


def _fill(gangs: Gangs, before: dict[str, str]) -> None:
    """A pod takes nearly all CPU of a node with members, without asking kube-scheduler."""
    node = next(
        name for name in gangs.nodes if any(f"{name}/gpu" in one for one in before.values())
    )
    filler = container("main")
    filler["resources"]["requests"] = {"cpu": f"{gangs.milli_cpu(node) * 8 // 10}m"}
    gangs.bed.apply(pod("filler", gangs.namespace, filler, nodeName=node))
    gangs.bed.running("filler", gangs.namespace)


def _never_moved_until_running(gangs: Gangs, before: dict[str, str], free: set[str]) -> None:
    """No claim of a member that was set free is given other devices, no running member is ended.

    Those that are still held the controller may place anew, and only the controller can: what
    counts is what a member has when it is first seen free. free: UIDs of those that are already.
    """
    running: set[str] = set()

    def unmoved() -> bool:
        pods: dict[str, Any] = {one["metadata"]["uid"]: one for one in gangs.pods("train")}
        running.update(uid for uid, one in pods.items() if is_running(one))
        claims = gangs.claims("train")
        now = allocations(claims)
        for claim in claims:
            uid, owners = claim["metadata"]["uid"], claim["metadata"]["ownerReferences"]
            if uid in now and not free & {one["uid"] for one in owners}:
                before[uid] = now[uid]
        free.update(_free(pods.values()))
        moved = {uid: (was, now[uid]) for uid, was in before.items() if now.get(uid, was) != was}
        ended = running - set(pods)
        assert not moved
        assert not ended
        return True

    def decided() -> bool:
        conditions = [
            one.get("reason")
            for made in gangs.pods("train")
            for one in made["status"].get("conditions") or ()
        ]
        return "Unschedulable" in conditions or len(running) == 4

    steadily(unmoved, decided, "every member keeps its devices")
    gangs.bed.kubectl("delete", "pod", "-n", gangs.namespace, "filler", "--wait=false")
    steadily(unmoved, lambda: len(running) == 4, "every member keeps its devices")


def _free(pods: Iterable[Object]) -> set[str]:
    """UIDs of those that are not gated."""
    return {one["metadata"]["uid"] for one in pods if not is_gated(one)}


def _four_claims(gangs: Gangs) -> list[dict[str, Any]]:
    """The claims, or one that is not allocated where they are not all there."""
    found = gangs.claims("train")
    return found if len(found) == 4 else [{}]


def _four_free(gangs: Gangs) -> bool:
    found = gangs.pods("train")
    return len(found) == 4 and not any(map(is_gated, found))


def _has_no_plan(gangs: Gangs) -> bool:
    """Nor says that it had one."""
    found = gangs.gang("train") or {}
    told = condition(found, "Allocated").get("reason") == "NotPlanned"
    return told and not found["status"].get("plan")


def _is_tracked(made: dict[str, Any]) -> bool:
    return bool(made["metadata"].get("finalizers"))


def _versions(gangs: Gangs) -> dict[str, str]:
    """The version of each object that belongs to the gang."""
    gang = gangs.gang("train")
    assert gang
    return {
        f"{one['kind']} {one['metadata']['name']}": _version(one["metadata"])
        for one in (gang, *gangs.pods("train"), *gangs.claims("train"))
    }


def _version(metadata: dict[str, Any]) -> str:
    """The version of an object, and who wrote it."""
    last = max(metadata["managedFields"], key=lambda one: one["time"])
    return f"{metadata['resourceVersion']} by {last['manager']}"
