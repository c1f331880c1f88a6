"""Groups of other projects from their pods to bound pods, on an in-memory API server."""

from functools import partial
from typing import Any

from dragoon.api.gang import ANNOTATION_SIZE, ANNOTATION_SOURCE, LABEL, GangObject
from dragoon.kube.port import GANGS, JOB_SETS, JOBS, PODS, VOLCANO_GROUPS, Object
from tests.scenario.gang.bed import SPACE, Bed, condition, says
from tests.scenario.gang.others import member, serve, store
from tests.scenario.pluginbed import until


async def bound(bed: Bed, label: str, count: int) -> None:
    async def all_bound() -> bool:
        return len(await bed.bound(label)) == count

    await until(f"{count} pods of {label} are bound", all_bound)


async def gangs(bed: Bed) -> dict[str, dict[str, Any]]:
    """The specs of all Gangs, by the group that they are of."""
    listing = await bed.api.list(GANGS, namespace=SPACE)
    return {one["spec"].get("source", {}).get("group", ""): one["spec"] for one in listing.items}


async def leader_worker_set(bed: Bed, replica: int, size: int, **more: Any) -> None:
    """The pods of one replica: the leader is of the set's StatefulSet, workers of the replica's."""
    for index in range(size):
        sts = "llm" if index == 0 else f"llm-{replica}"
        await member(
            bed,
            f"llm-{replica}" if index == 0 else f"llm-{replica}-{index}",
            labels={
                LABEL: "llm",
                "leaderworkerset.sigs.k8s.io/name": "llm",
                "leaderworkerset.sigs.k8s.io/group-index": str(replica),
                "leaderworkerset.sigs.k8s.io/group-key": f"key-{replica}",
                "leaderworkerset.sigs.k8s.io/worker-index": str(index),
            },
            annotations={
                "leaderworkerset.sigs.k8s.io/size": str(size),
                **({} if index == 0 else {"leaderworkerset.sigs.k8s.io/leader-name": "llm-0"}),
            },
            owner={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": sts, "uid": f"u-{sts}"},
            **more,
        )


async def test_each_replica_of_a_leader_worker_set_is_a_gang() -> None:
    async with Bed().up() as bed, bed.controller():
        for replica in range(2):
            await leader_worker_set(bed, replica, 2, template="pair")
        await bound(bed, "llm", 4)
        found = await gangs(bed)
        assert set(found) == {"llm/0", "llm/1"}
        assert all(spec["size"] == 2 for spec in found.values())


async def test_a_replica_without_room_has_nothing_while_another_one_runs() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        await leader_worker_set(bed, 0, 2, template="pair")
        await bound(bed, "llm", 2)
        await leader_worker_set(bed, 1, 2, template="pair")

        async def waits() -> bool:
            found = await _of_group(bed, "llm/1")
            return found is not None and found.status.phase == "Waiting"

        await until("the second waits", waits)
        assert {name.rpartition("-gpu-")[0] for name in await bed.allocated()} == {
            "llm-0",
            "llm-0-1",
        }


async def _of_group(bed: Bed, group: str) -> GangObject | None:
    listing = await bed.api.list(GANGS, namespace=SPACE)
    for raw in listing.items:
        if raw["spec"].get("source", {}).get("group") == group:
            return await bed.see(raw["metadata"]["name"])
    return None


class JobSet:
    """A JobSet and the pods of its Jobs: {replicated job: (jobs, pods of each)}."""

    def __init__(
        self, bed: Bed, name: str, jobs: dict[str, tuple[int, int]], *, template: str = "one"
    ) -> None:
        self._template = template
        self._bed = bed
        self._name = name
        self._jobs = jobs
        self._owner: Object = {}

    async def create(self) -> None:
        spec = [
            {
                "name": name,
                "replicas": replicas,
                "template": {"spec": {"parallelism": pods, "completions": pods}},
            }
            for name, (replicas, pods) in self._jobs.items()
        ]
        stored = await store(self._bed, JOB_SETS, self._name, {"replicatedJobs": spec})
        self._owner = {
            "apiVersion": JOB_SETS.api_version,
            "kind": "JobSet",
            "name": self._name,
            "uid": stored["metadata"]["uid"],
            "controller": True,
        }

    async def start(self, attempt: int) -> None:
        """Its Jobs and their pods, all of one attempt."""
        for name, (replicas, pods) in self._jobs.items():
            for index in range(replicas):
                await self._job(name, index, pods, attempt)

    async def stop(self) -> None:
        """As when a Job has failed: all Jobs go, and their pods with them."""
        for job in (await self._bed.api.list(JOBS, namespace=SPACE)).items:
            await self._bed.api.delete(JOBS, job["metadata"]["name"], namespace=SPACE)
        for pod in (await self._bed.api.list(PODS, namespace=SPACE)).items:
            await self._bed.api.delete(PODS, pod["metadata"]["name"], namespace=SPACE)

    async def _job(self, part: str, number: int, pods: int, attempt: int) -> None:
        name = f"{self._name}-{part}-{number}"
        labels = {
            "jobset.sigs.k8s.io/jobset-name": self._name,
            "jobset.sigs.k8s.io/replicatedjob-name": part,
            "jobset.sigs.k8s.io/job-index": str(number),
            "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        }
        job = await self._bed.api.create(
            JOBS,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": SPACE,
                    "labels": labels,
                    "ownerReferences": [self._owner],
                },
                "spec": {"parallelism": pods, "completions": pods},
            },
        )
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name}
        for index in range(pods):
            await member(
                self._bed,
                f"{name}-{index}-{attempt}",
                labels={
                    LABEL: self._name,
                    **labels,
                    "batch.kubernetes.io/job-completion-index": str(index),
                },
                owner={**owner, "uid": job["metadata"]["uid"]},
                template=self._template,
            )


async def test_all_pods_of_a_job_set_are_one_gang_whatever_jobs_they_are_of() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        serve(bed.api, JOB_SETS)
        group = JobSet(bed, "s", {"driver": (1, 1), "workers": (1, 3)})
        await group.create()
        await group.start(0)
        gang = await bed.phase("s", "Running")
        assert gang.spec.size == 4
        assert [one.kind for one in gang.owners] == ["JobSet"]
        await bound(bed, "s", 4)


async def test_a_job_set_that_comes_after_its_pods_is_taken_up() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        group = JobSet(bed, "s", {"driver": (1, 1), "workers": (1, 2)})
        await group.create()
        await group.start(0)
        gang = await bed.phase("s", "Gathering")
        assert condition(gang, "Complete")[1] == "GroupMissing"
        serve(bed.api, JOB_SETS)
        await bed.phase("s", "Running")
        await bound(bed, "s", 3)


async def test_members_of_a_job_set_that_is_started_again_are_where_they_were() -> None:
    async with Bed(nodes=2).up() as bed, bed.controller():
        serve(bed.api, JOB_SETS)
        group = JobSet(bed, "s", {"workers": (2, 2)}, template="pair")
        await group.create()
        await group.start(0)
        before = await bed.phase("s", "Running")
        nodes = await _nodes(bed, "s")
        assert len(nodes) == 4
        assert set(nodes.values()) == {"n0", "n1"}
        await group.stop()
        await group.start(1)
        await bound(bed, "s", 4)
        after = await bed.phase("s", "Running")
        assert after.uid == before.uid
        assert await _nodes(bed, "s") == nodes


async def _nodes(bed: Bed, label: str) -> dict[str, str]:
    """Where each member is, by its name without the attempt."""
    return {name.rpartition("-")[0]: node for name, node in (await bed.bound(label)).items()}


async def test_a_pytorch_job_is_one_gang_of_its_master_and_its_workers() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller():
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "tune", "uid": "t"}
        for kind, number in (("master", 1), ("worker", 3)):
            for index in range(number):
                await member(
                    bed,
                    f"tune-{kind}-{index}",
                    labels={
                        LABEL: "tune",
                        "training.kubeflow.org/job-name": "tune",
                        "training.kubeflow.org/operator-name": "pytorchjob-controller",
                        "training.kubeflow.org/replica-type": kind,
                        "training.kubeflow.org/replica-index": str(index),
                    },
                    annotations={ANNOTATION_SIZE: "4"},
                    owner=owner,
                )
        gang = await bed.phase("tune", "Running")
        assert [one.kind for one in gang.owners] == ["PyTorchJob"]
        assert gang.status.plan is not None
        assert {one.slot for one in gang.status.plan.held} == {
            "master/0",
            "worker/0",
            "worker/1",
            "worker/2",
        }


async def test_a_group_with_pods_under_two_labels_is_refused_and_told_on_both() -> None:
    async with Bed().up() as bed, bed.controller():
        said = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        for name in ("a", "b"):
            labels = {LABEL: name, "kueue.x-k8s.io/pod-group-name": "one"}
            await member(bed, name, labels=labels, annotations=said)

        async def told(name: str) -> bool:
            found = await bed.see(name)
            return says(found, "Valid", "TwoGroups")

        for name in ("a", "b"):
            await until(f"{name} is refused", partial(told, name))
        assert not await bed.allocated()
        # Put right: both under one label.
        await bed.api.delete(PODS, "b", namespace=SPACE)
        await member(
            bed,
            "b",
            labels={LABEL: "a", "kueue.x-k8s.io/pod-group-name": "one"},
            annotations=said,
        )
        await bound(bed, "a", 2)


async def test_a_pod_with_two_answers_is_told_and_others_go_on() -> None:
    async with Bed().up() as bed, bed.controller():
        await member(
            bed,
            "torn",
            labels={LABEL: "g", "kueue.x-k8s.io/pod-group-name": "x"},
            annotations={
                "kueue.x-k8s.io/pod-group-name": "y",
                "kueue.x-k8s.io/pod-group-total-count": "1",
            },
        )
        await until("an event says so", lambda: bed.events("BadGroup"))
        (note,) = await bed.events("BadGroup")
        assert "found 'x' in label kueue.x-k8s.io/pod-group-name" in note
        await bed.job("other", 2)
        await bed.phase("other", "Running")
        assert set(await bed.bound("g")) == set()


async def volcano(bed: Bed, name: str, task: str, **more: Any) -> None:
    await member(
        bed,
        name,
        labels={LABEL: "mpi", "volcano.sh/task-spec": task},
        annotations={"scheduling.k8s.io/group-name": "pg", **more.pop("annotations", {})},
        schedulerName="volcano",
    )


async def test_each_part_of_a_group_has_its_minimum_before_anything_is_placed() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, VOLCANO_GROUPS)
        parts = {"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}}
        await store(bed, VOLCANO_GROUPS, "pg", parts)
        for index in range(4):
            await volcano(bed, f"w{index}", "worker")
        gang = await bed.phase("mpi", "Gathering")
        assert gang.status.waiting_for == "1 of 3 pods"
        await volcano(bed, "p0", "ps")
        await bed.phase("mpi", "Running")
        # Those beyond the minimum follow.
        await bound(bed, "mpi", 5)


async def test_a_placeholder_of_yunikorn_is_no_member_and_is_not_missed() -> None:
    async with Bed().up() as bed, bed.controller():
        said = {
            "yunikorn.apache.org/task-group-name": "t",
            "yunikorn.apache.org/task-groups": '[{"name": "t", "minMember": 2}]',
        }
        labels = {LABEL: "app", "applicationId": "app"}
        hold = {**said, "yunikorn.apache.org/placeholder": "true"}
        await member(bed, "tg-app-t-0", labels=labels, annotations=hold, template="one")
        for name in ("p0", "p1"):
            await member(bed, name, labels=labels, annotations=said)
        gang = await bed.phase("app", "Running")
        assert gang.status.members.present == 2
        assert set(await bed.bound("app")) >= {"p0", "p1"}
        holder = await bed.api.get(PODS, "tg-app-t-0", namespace=SPACE)
        assert not holder["spec"].get("schedulingGates")
        assert not {name for name in await bed.allocated() if name.startswith("tg-")}


async def test_of_two_projects_that_disagree_the_one_that_is_named_counts() -> None:
    async with Bed().up() as bed, bed.controller():
        serve(bed.api, VOLCANO_GROUPS)
        await store(bed, VOLCANO_GROUPS, "pg", {"minMember": 3})
        kueue = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        group = {"kueue.x-k8s.io/pod-group-name": "one"}

        async def pods(label: str, **said: str) -> None:
            for index in range(2):
                await member(
                    bed,
                    f"{label}-{index}",
                    labels={LABEL: label, **group},
                    annotations={"scheduling.k8s.io/group-name": "pg", **kueue, **said},
                )

        await pods("torn")
        gang = await bed.phase("torn", "Invalid")
        assert "two sizes: Kueue one says 2, Volcano pg says 3" in condition(gang, "Valid")[2]
        group["kueue.x-k8s.io/pod-group-name"] = "two"
        await pods("told", **{ANNOTATION_SOURCE: "Kueue"})
        await bed.phase("told", "Running")


async def test_a_group_that_is_changed_on_a_placed_pod_is_told_and_the_pod_keeps_its_place() -> (
    None
):
    async with Bed(nodes=1).up() as bed, bed.controller():
        said = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        for name in ("p0", "p1"):
            labels = {LABEL: "g", "kueue.x-k8s.io/pod-group-name": "one"}
            await member(bed, name, labels=labels, annotations=said)
        await bed.phase("g", "Running")
        held = await bed.allocated()
        changed = {"metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": "two"}}}
        await bed.api.patch(PODS, "p0", changed, namespace=SPACE)

        async def told() -> bool:
            found = await bed.see("g")
            return says(found, "Valid", "LabelChanged")

        await until("it is told", told)
        gang = await bed.see("g")
        assert gang is not None
        assert (
            "group of Kueue of pod team/p0: found 'two', allowed is 'one'"
            in (condition(gang, "Valid")[2])
        )
        assert gang.status.plan is not None
        assert {one.pod for one in gang.status.plan.held} == {"p0", "p1"}
        assert await bed.allocated() == held
