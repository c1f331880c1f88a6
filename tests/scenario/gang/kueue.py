"""Kueue in a test: what it would write into Workloads, step by step, on the in-memory API server."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoon.api import gang
from dragoon.app.controller import Controller
from dragoon.errors import ApiNotFoundError
from dragoon.gang.kueue.apis import CONTROLLER, GROUP, Apis
from dragoon.kube.port import JOBS, PODS, Object
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.pluginbed import until

WHOLE = frozenset(("admissionchecks", "workloads", "resourceflavors"))
CHECK = "placeable"


class Kueue:
    """The quota side. apis: of the version that it serves."""

    def __init__(self, bed: Bed, version: str = "v1beta2") -> None:
        self._bed = bed
        self.apis = Apis(version)

    def install(self, plurals: frozenset[str] = WHOLE) -> None:
        """Its kinds are served from now on."""
        self._bed.api.more_groups[GROUP] = (self.apis.version,)
        self._bed.api.more_plurals[GROUP, self.apis.version] = plurals

    def remove(self) -> None:
        """Its kinds are gone."""
        del self._bed.api.more_groups[GROUP]

    async def check(self, name: str = CHECK, controller: str = CONTROLLER, **spec: Any) -> None:
        """An AdmissionCheck, and a flavor that means any node."""
        await self._create(self.apis.checks, name, {"controllerName": controller, **spec})

    async def flavor(self, labels: dict[str, str] | None = None) -> None:
        await self._create(self.apis.flavors, "any", {"nodeLabels": labels or {}})

    async def queued(
        self, name: str, pods: int, *, template: str = "one", owner: str = "Job", **more: Any
    ) -> None:
        """A Workload that has quota now and waits for our check."""
        claims = [{"name": "gpu", "resourceClaimTemplateName": template}] if template else []
        spec = {"containers": [{"name": "main", "image": "none"}], "resourceClaims": claims}
        podset = {"name": "main", "count": pods, "template": {"metadata": {}, "spec": spec}}
        await self._create(
            self.apis.workloads,
            name,
            {"podSets": [podset], **more},
            ownerReferences=[
                {"apiVersion": "batch/v1", "kind": owner, "name": name, "uid": f"of-{name}"}
            ],
        )
        await self.reserve(name)

    async def reserve(self, name: str) -> None:
        """It gets quota; its checks begin anew."""
        raw = await self.see(name)
        count = raw["spec"]["podSets"][0]["count"]
        assigned = {"name": "main", "count": count, "flavors": {"gpus": "any"}}
        checks = (raw.get("status") or {}).get("admissionChecks") or [_pending()]
        await self._write(
            raw,
            {
                "conditions": [_condition("QuotaReserved")],
                "admission": {"podSetAssignments": [assigned]},
                "admissionChecks": checks,
            },
        )

    async def take_back(self, name: str) -> None:
        """It loses its quota by the word of a check, as `resetChecksOnEviction` does it."""
        raw = await self.see(name)
        (old,) = raw["status"]["admissionChecks"]
        assert old["state"] == "Retry"
        later = datetime.now(UTC) + timedelta(hours=1)
        kept = {"retryCount": (old.get("retryCount") or 0) + 1}
        if "requeueAfterSeconds" in old:
            kept["requeueAfterSeconds"] = old["requeueAfterSeconds"]
        await self._write(
            raw,
            {
                "conditions": [_condition("Evicted", reason="AdmissionCheck")],
                "admission": None,
                "requeueState": {"requeueAt": later.strftime("%Y-%m-%dT%H:%M:%SZ")},
                "admissionChecks": [
                    _pending("Reset to Pending after eviction. Previously: Retry") | kept
                ],
            },
        )

    async def deactivate(self, name: str) -> None:
        """A check has rejected it: it loses its quota, and a person has to activate it again."""
        await self._activity(name, active=False)
        raw = await self.see(name)
        conditions = [_condition("Evicted", reason="Deactivated")]
        await self._write(
            raw, {"conditions": conditions, "admission": None, "admissionChecks": [_pending()]}
        )

    async def activate(self, name: str) -> None:
        """A person has done so, and there is quota."""
        await self._activity(name, active=True)
        await self.reserve(name)

    async def admit(self, name: str) -> None:
        """All its checks are ready."""
        raw = await self.see(name)
        conditions = [_condition("QuotaReserved"), _condition("Admitted")]
        await self._write(raw, {"conditions": conditions})

    async def start(self, name: str) -> None:
        """Its Job is resumed: the pods are made, with what the check adds to them."""
        await self.admit(name)
        raw = await self.see(name)
        (podset,) = raw["spec"]["podSets"]
        (check,) = raw["status"]["admissionChecks"]
        updates: list[Object] = check.get("podSetUpdates") or [{}]
        (update,) = updates
        job = await self._bed.api.create(
            JOBS,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {"parallelism": podset["count"]},
            },
        )
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, "name": name}
        for index in range(podset["count"]):
            await self._bed.api.create(
                PODS,
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"{name}-{index}",
                        "namespace": SPACE,
                        "labels": {"job-name": name, **(update.get("labels") or {})},
                        "annotations": update.get("annotations") or {},
                        "ownerReferences": [owner | {"uid": job["metadata"]["uid"]}],
                    },
                    "spec": podset["template"]["spec"],
                },
            )

    async def finish(self, name: str) -> None:
        """Its pods have ended, and so has it."""
        listing = await self._bed.api.list(PODS, namespace=SPACE, labels=f"job-name={name}")
        for pod in listing.items:
            await self._bed.end(pod["metadata"]["name"])
        raw = await self.see(name)
        await self._write(
            raw, {"conditions": [*raw["status"]["conditions"], _condition("Finished")]}
        )

    async def delete(self, name: str) -> None:
        await self._bed.api.delete(self.apis.workloads, name, namespace=SPACE)

    async def see(self, name: str) -> Object:
        return await self._bed.api.get(self.apis.workloads, name, namespace=SPACE)

    async def state(self, name: str) -> Object:
        """Our entry in the Workload's checks."""
        checks = (await self.see(name))["status"]["admissionChecks"]
        found: Object = next(one for one in checks if one["name"] == CHECK)
        return found

    async def reaches(self, name: str, state: str) -> Object:
        """Waits for a state of our check."""
        seen: list[Object] = []

        async def reached() -> bool:
            seen[:] = [await self.state(name)]
            return bool(seen[0]["state"] == state)

        try:
            await until(f"check of {name} is {state}", reached)
        except AssertionError as error:
            raise AssertionError(f"{error}; last seen {seen}") from None
        return seen[0]

    async def is_active(self, name: str = CHECK) -> str:
        """The Active condition of an AdmissionCheck: its status, empty before it has one."""
        try:
            raw = await self._bed.api.get(self.apis.checks, name)
        except ApiNotFoundError:
            return ""
        conditions = (raw.get("status") or {}).get("conditions") or ()
        return next((one["status"] for one in conditions if one["type"] == "Active"), "")

    async def pods(self, name: str) -> list[Object]:
        listing = await self._bed.api.list(PODS, namespace=SPACE, labels=f"job-name={name}")
        return list(listing.items)

    async def gangs_of(self, name: str) -> set[str]:
        return {one["metadata"]["labels"].get(gang.LABEL, "") for one in await self.pods(name)}

    async def _create(self, resource: Any, name: str, spec: Object, **meta: Any) -> None:
        space = {"namespace": SPACE} if resource.namespaced else {}
        await self._bed.api.create(
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name, **space, **meta},
                "spec": spec,
            },
        )

    async def _activity(self, name: str, *, active: bool) -> None:
        await self._bed.api.patch(
            self.apis.workloads, name, {"spec": {"active": active}}, namespace=SPACE
        )

    async def _write(self, raw: Object, status: Object) -> None:
        await self._bed.api.patch(
            self.apis.workloads,
            raw["metadata"]["name"],
            {"status": status},
            namespace=SPACE,
            subresource="status",
        )


@contextlib.asynccontextmanager
async def setting(
    *, nodes: int = 1, gpus: int = 4, version: str = "v1beta2"
) -> AsyncIterator[tuple[Bed, Kueue]]:
    """A cluster with Kueue, a check and a flavor."""
    async with Bed(nodes=nodes, gpus=gpus).up() as bed:
        kueue = Kueue(bed, version)
        kueue.install()
        await kueue.check()
        await kueue.flavor()
        yield bed, kueue


def metric(controller: Controller, name: str, **labels: str) -> float:
    """The value of a metric, 0 where it has none yet."""
    shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
    wanted = f"{name}{{{shown}}}" if shown else name
    for line in controller.metrics.text().decode().splitlines():
        if line.rpartition(" ")[0] == wanted:
            return float(line.rpartition(" ")[2])
    return 0.0


def _condition(type_: str, *, reason: str = "Test") -> Object:
    return {"type": type_, "status": "True", "reason": reason, "lastTransitionTime": _now()}


def _pending(message: str = "") -> Object:
    return {"name": CHECK, "state": "Pending", "message": message, "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
