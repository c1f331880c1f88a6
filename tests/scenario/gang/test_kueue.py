"""The check for Kueue in a whole controller: verdicts, promises, answers that are lost or too late."""

import threading
from collections import Counter

from dragoon.allocator.gang.model import Budget, GangAsk, Outcome, PlacementSnapshot
from dragoon.allocator.gang.planning import plan
from dragoon.errors import ApiConflictError, ApiUnavailableError
from dragoon.kube.port import CLAIMS, PODS
from tests.scenario.gang.bed import SPACE
from tests.scenario.gang.kueue import metric, setting
from tests.scenario.pluginbed import until


async def test_what_fits_is_ready_and_its_pods_run_as_one_gang() -> None:
    async with setting(nodes=2) as (bed, kueue), bed.controller() as controller:
        await until("the check is active", kueue.is_active)
        await kueue.queued("train", 4, template="pair")
        ready = await kueue.reaches("train", "Ready")
        assert "4 pods can be placed now, on n0, n1" in ready["message"]
        # Nothing of it is written anywhere before the pods are there.
        assert not await bed.allocated()
        assert metric(controller, "dragoon_kueue_promises") == 1
        await kueue.start("train")
        gang = await bed.phase("train", "Running")
        assert gang.spec.size == 4
        assert Counter((await bed.bound("train")).values()) == {"n0": 2, "n1": 2}
        await until("the promise is over", lambda: not metric(controller, "dragoon_kueue_promises"))
        assert metric(controller, "dragoon_kueue_checks_total", state="Ready") == 1


async def test_what_does_not_fit_is_sent_back_with_the_reason_and_starts_when_there_is_room() -> (
    None
):
    async with setting() as (bed, kueue), bed.controller():
        await bed.job("busy", 1, template="pair")
        await bed.phase("busy", "Running")
        await kueue.queued("train", 2, template="pair")
        back = await kueue.reaches("train", "Retry")
        assert "1 of 2 members fit" in back["message"]
        assert "not in use" in back["message"]
        assert back["requeueAfterSeconds"] == 5
        await until("it is told", lambda: bed.events("NotPlaceableRetry"))
        await bed.end("busy-0")
        # Its quota has not been taken back yet: it starts in the middle of its wait.
        await kueue.reaches("train", "Ready")
        assert "requeueAt" not in ((await kueue.see("train"))["status"].get("requeueState") or {})


async def test_one_without_quota_keeps_its_reason_and_is_woken_when_there_is_room() -> None:
    async with setting() as (bed, kueue), bed.controller():
        await bed.job("busy", 2, template="pair")
        await bed.phase("busy", "Running")
        await kueue.queued("train", 1, template="pair")
        reason = (await kueue.reaches("train", "Retry"))["message"]
        await kueue.take_back("train")

        async def told_again() -> bool:
            return bool((await kueue.state("train"))["message"] == reason)

        await until("the reason is there again", told_again)
        await bed.end("busy-0")
        await bed.end("busy-1")

        async def woken() -> bool:
            state = (await kueue.see("train"))["status"].get("requeueState") or {}
            return "requeueAt" not in state

        await until("it is woken", woken)
        await kueue.reserve("train")
        assert (await kueue.reaches("train", "Ready"))["retryCount"] == 1


async def test_of_two_for_the_same_devices_only_one_is_told_that_it_may_start() -> None:
    async with setting() as (bed, kueue), bed.controller() as controller:
        await kueue.queued("one", 4)
        await kueue.queued("two", 4)

        async def answered() -> bool:
            states = {(await kueue.state(name))["state"] for name in ("one", "two")}
            return states == {"Ready", "Retry"}

        await until("both are answered", answered)
        first = "one" if (await kueue.state("one"))["state"] == "Ready" else "two"
        second = {"one": "two", "two": "one"}[first]
        assert metric(controller, "dragoon_kueue_promises") == 1
        await kueue.start(first)
        await bed.phase(first, "Running")
        assert (await kueue.state(second))["state"] == "Retry"
        await kueue.finish(first)
        await kueue.reaches(second, "Ready")


async def test_what_is_promised_is_taken_for_other_gangs_until_it_is_over() -> None:
    async with setting() as (bed, kueue), bed.controller():
        await kueue.queued("train", 4)
        await kueue.reaches("train", "Ready")
        await bed.job("other", 2, template="pair")
        await bed.phase("other", "Waiting")
        await kueue.delete("train")
        await bed.phase("other", "Running")


async def test_one_that_is_deleted_while_it_is_planned_leaves_no_promise() -> None:
    thinking, go = threading.Event(), threading.Event()

    def slow(placement: PlacementSnapshot, ask: GangAsk, budget: Budget) -> Outcome:
        """Answers late to the first Workload."""
        thinking.set()
        go.wait(30)
        return plan(placement, ask, budget)

    async with setting() as (bed, kueue), bed.controller(planner=slow) as controller:
        await kueue.queued("gone", 4)
        await until("it is planned", thinking.is_set)
        await kueue.delete("gone")
        await kueue.queued("next", 4)
        go.set()
        await kueue.reaches("next", "Ready")
        assert metric(controller, "dragoon_kueue_promises") == 1


async def test_what_is_kept_for_a_gang_that_waits_is_promised_to_nobody() -> None:
    async with setting() as (bed, kueue), bed.controller(reserve_after_seconds=0.0):
        await bed.job("busy", 1, template="pair")
        await bed.phase("busy", "Running")
        await bed.job("big", 2, template="pair")

        async def kept() -> bool:
            gang = await bed.see("big")
            return gang is not None and gang.status.reservation is not None

        await until("devices are kept for it", kept)
        # Two devices are free, and its gang would not get them.
        await kueue.queued("train", 1, template="pair")
        await kueue.reaches("train", "Retry")
        await bed.end("busy-0")
        await bed.phase("big", "Running")


async def test_two_that_would_share_the_cpu_of_a_node_are_not_both_told_ready() -> None:
    async with setting(nodes=0) as (bed, kueue), bed.controller():
        await bed.add_node("n0", 4, cpu="3")
        needs = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "2"}}}
        for name in ("one", "two"):
            claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
            podset = {
                "name": "main",
                "count": 1,
                "template": {"spec": {"containers": [needs], "resourceClaims": claims}},
            }
            await kueue.queued(name, 1, podSets=[podset])

        async def answered() -> bool:
            states = sorted([(await kueue.state(name))["state"] for name in ("one", "two")])
            return states == ["Ready", "Retry"]

        await until("one is ready", answered)


async def test_after_a_restart_what_was_promised_is_kept_before_anything_is_planned() -> None:
    async with setting() as (bed, kueue):
        async with bed.controller():
            await kueue.queued("train", 4)
            await kueue.reaches("train", "Ready")
        await kueue.admit("train")
        # While no controller runs others come for the same devices, with pods that are complete.
        await bed.job("other", 2, template="pair")
        await kueue.queued("late", 1)
        # That Kueue is there cannot be seen at first: gangs wait for that a little.
        bed.api.faults.fail(verb="groups", times=3)
        async with bed.controller() as controller:
            await bed.phase("other", "Waiting")
            await kueue.reaches("late", "Retry")
            assert metric(controller, "dragoon_kueue_promises") == 1
            await kueue.start("train")
            await bed.phase("train", "Running")


async def test_a_workload_whose_pods_nobody_can_place_goes_back_into_the_queue() -> None:
    async with setting() as (bed, kueue), bed.controller(kueue_promise_seconds=1.0):
        await kueue.queued("train", 4)
        await kueue.reaches("train", "Ready")
        # What plain pods take nobody can keep for it: they are placed by kube-scheduler.
        await bed.claim("stranger", 2)
        results = [
            {
                "driver": "gpu.dragoon.dev",
                "pool": "n0/gpu",
                "device": f"gpu-{number}",
                "request": "g",
            }
            for number in range(2)
        ]
        await bed.api.patch(
            CLAIMS,
            "stranger",
            {"status": {"allocation": {"devices": {"results": results}}}},
            namespace=SPACE,
            subresource="status",
        )
        await kueue.start("train")
        back = await kueue.reaches("train", "Retry")
        assert "none could be placed within 1 s" in back["message"]


async def test_one_that_no_node_could_take_is_rejected_and_one_that_may_fit_one_day_is_not() -> (
    None
):
    async with setting() as (bed, kueue), bed.controller(kueue_reject_seconds=0.0):
        await bed.template("six", 6)
        await kueue.queued("huge", 1, template="six")
        rejected = await kueue.reaches("huge", "Rejected")
        assert "0 of 1 members fit" in rejected["message"]
        assert "podSetUpdates" not in rejected
        await until("it is told", lambda: bed.events("NotPlaceableRejected"))
        await kueue.queued("full", 4)
        await kueue.reaches("full", "Ready")
        await kueue.queued("waits", 1)
        await kueue.reaches("waits", "Retry")


async def test_one_that_a_person_activates_again_has_its_whole_time_once_more() -> None:
    async with setting() as (bed, kueue), bed.controller(kueue_reject_seconds=0.001):
        await bed.template("six", 6)
        await kueue.queued("huge", 1, template="six")
        await kueue.reaches("huge", "Retry")
        await kueue.take_back("huge")
        await kueue.reserve("huge")
        await kueue.reaches("huge", "Rejected")
        await kueue.deactivate("huge")
        await kueue.activate("huge")
        await kueue.reaches("huge", "Retry")


async def test_a_cluster_that_has_just_come_up_rejects_nothing() -> None:
    async with setting(nodes=0) as (bed, kueue), bed.controller():
        await kueue.queued("early", 1)
        await kueue.reaches("early", "Retry")
        await bed.add_node("n0", 4)
        await kueue.reaches("early", "Ready")


async def test_a_claim_template_that_is_missing_is_named_and_waited_for() -> None:
    async with setting() as (bed, kueue), bed.controller():
        await kueue.queued("train", 1, template="later")
        back = await kueue.reaches("train", "Retry")
        assert back["message"] == "claim template later is not there"
        await bed.template("later", 1)
        await kueue.take_back("train")
        await kueue.reserve("train")
        await kueue.reaches("train", "Ready")


async def test_one_without_claims_is_ready_at_once_though_everything_is_full() -> None:
    async with setting(nodes=0) as (bed, kueue), bed.controller():
        await kueue.queued("plain", 3, template="")
        assert "no pod of it names" in (await kueue.reaches("plain", "Ready"))["message"]


async def test_a_pod_that_kueue_still_gates_is_not_planned() -> None:
    async with setting() as (bed, _), bed.controller():
        made = await bed.pod("p0", gang="g", size="1")
        gates = [*made["spec"]["schedulingGates"], {"name": "kueue.x-k8s.io/admission"}]
        await bed.api.delete(PODS, "p0", namespace=SPACE)
        spec = {**made["spec"], "schedulingGates": gates}
        meta = {
            key: made["metadata"][key] for key in ("name", "namespace", "labels", "annotations")
        }
        await bed.api.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        )
        # A gang that came later has been through all of it.
        await bed.job("other", 2)
        await bed.phase("other", "Running")
        assert set(await bed.bound("g")) == set()
        assert all(name.startswith("other") for name in await bed.allocated())
        left = [gate for gate in gates if gate["name"] != "kueue.x-k8s.io/admission"]
        await bed.api.patch(PODS, "p0", {"spec": {"schedulingGates": left}}, namespace=SPACE)
        await bed.phase("g", "Running")


async def test_a_ready_that_somebody_else_was_faster_than_is_decided_again() -> None:
    async with setting() as (bed, kueue):
        await kueue.queued("train", 4)
        lost = bed.api.faults.fail(
            verb="patch",
            resource=kueue.apis.workloads,
            error=lambda: ApiConflictError("the object has been modified", status=409),
            times=2,
        )
        async with bed.controller() as controller:
            await kueue.reaches("train", "Ready")
            assert lost.hits == 2
            assert metric(controller, "dragoon_kueue_promises") == 1


async def test_a_ready_whose_answer_was_lost_keeps_its_promise() -> None:
    async with setting() as (bed, kueue):
        await kueue.queued("train", 4)
        lost = bed.api.faults.lose_answer(
            verb="patch",
            resource=kueue.apis.workloads,
            error=lambda: ApiUnavailableError("the connection broke"),
        )
        async with bed.controller():
            await kueue.reaches("train", "Ready")
            assert lost.hits == 1
            await kueue.queued("late", 1)
            await kueue.reaches("late", "Retry")


async def test_a_bad_workload_costs_only_itself() -> None:
    async with setting() as (bed, kueue), bed.controller():
        await kueue.queued(
            "bad",
            1,
            podSets=[
                {
                    "name": "main",
                    "count": 1,
                    "template": {
                        "spec": {
                            "containers": [
                                {"name": "c", "resources": {"requests": {"cpu": "many"}}}
                            ],
                            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
                        }
                    },
                }
            ],
        )
        rejected = await kueue.reaches("bad", "Rejected")
        assert "cpu" in rejected["message"]
        await kueue.queued("good", 1)
        await kueue.reaches("good", "Ready")
