"""The controller in a test: on an in-memory API server with a small control plane around it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from dragoon.allocator.gang.planning import plan
from dragoon.api.gang import ANNOTATION_SCOPE, ANNOTATION_SIZE, LABEL, GangObject, gang_of
from dragoon.app.controller import Controller
from dragoon.app.controller_config import ControllerConfig
from dragoon.errors import ApiNotFoundError
from dragoon.gang.admission_memory import POLICIES
from dragoon.gang.planning import Planner
from dragoon.gang.protocol.model import Settings
from dragoon.gang.remembering import Pace
from dragoon.kube.leading import Timing
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    EVENTS,
    GANGS,
    JOBS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Api,
    Object,
)
from tests.scenario.gang.standins import ControlPlane, devices_of
from tests.scenario.pluginbed import DRIVER, until

SPACE = "team"
FAST = Settings(
    least_wait=0.02,
    per_claim=0.0,
    least_per_claim=0.0,
    stuck_after=0.1,
    slot_grace=300,
    return_wait=300,
)
# It yields for as long as a busy machine may need to free the devices of a gang one by one.
PACE = Pace(replan=0.02, status=0.02, conflict=0.01, served=0.05, yields=15.0)
TIMING = Timing(lease=60.0, renew=40.0, retry=0.05)
"""So long that no pause of a busy machine costs a leader its lease."""
SOON_LOST = Timing(lease=1.0, renew=0.6, retry=0.05)
"""Where a leader dies, and another one is to follow it."""


class Bed:
    """A cluster. gated: whether the policies are there; policies: instead, and to be changed."""

    def __init__(
        self, *, nodes: int = 2, gpus: int = 4, gated: bool = True, policies: Any = None
    ) -> None:
        admission = POLICIES if gated and policies is None else policies
        self.api = MemoryApi(admission=admission)
        self.plane = ControlPlane(self.api)
        self._nodes, self._gpus = nodes, gpus
        self._count = count()

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator["Bed"]:
        """The cluster with its control plane running."""
        await self.api.create(CLASSES, _class("gpu.dragoon.dev"))
        for index in range(self._nodes):
            await self.add_node(f"n{index}", self._gpus)
        await self.template("one", 1)
        await self.template("pair", 2)
        running = asyncio.create_task(self.plane.run())
        try:
            yield self
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def controller(
        self,
        api: Api | None = None,
        *,
        planner: Planner = plan,
        timing: Timing = TIMING,
        **changes: Any,
    ) -> AsyncIterator[Controller]:
        """A controller, stopped as by SIGTERM at the end."""
        config = ControllerConfig(listen="127.0.0.1:0", kube_api_qps=10000, **changes)
        found = Controller(
            config,
            api=api or self.api,
            planner=planner,
            protocol=FAST,
            pace=PACE,
            timing=timing,
        )
        stop = asyncio.Event()
        running = asyncio.create_task(found.run(stop))
        try:
            yield found
        finally:
            stop.set()
            await running

    async def add_node(
        self,
        name: str,
        gpus: int,
        *,
        cpu: str = "32",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        room = {"cpu": cpu, "memory": "128Gi", "pods": "110"}
        await self.api.create(
            NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                },
                "status": {"allocatable": room},
            },
        )
        await self.api.create(
            SLICES,
            {
                "apiVersion": SLICES.api_version,
                "kind": SLICES.kind,
                "metadata": {"name": f"{name}-gpu"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": name,
                    "pool": {"name": f"{name}/gpu", "generation": 1, "resourceSliceCount": 1},
                    "devices": [
                        {
                            "name": f"gpu-{gpu}",
                            "attributes": {
                                "type": {"string": "gpu"},
                                "nvlinkDomain": {"string": f"{name}-{gpu // 2}"},
                            },
                        }
                        for gpu in range(gpus)
                    ],
                },
            },
        )

    async def template(self, name: str, gpus: int) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": gpus}}
        match = {"requests": ["gpu"], "matchAttribute": f"{DRIVER}/nvlinkDomain"}
        devices: Object = {"requests": [request]}
        if gpus > 1:
            devices["constraints"] = [match]
        await self.api.create(
            TEMPLATES,
            {
                "apiVersion": TEMPLATES.api_version,
                "kind": TEMPLATES.kind,
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {"spec": {"devices": devices}},
            },
        )

    async def job(
        self,
        name: str,
        pods: int,
        *,
        template: str = "one",
        size: str | None = None,
        label: str = "",
        **more: Any,
    ) -> list[Object]:
        """A Job and its pods."""
        job = await self.api.create(
            JOBS,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {"parallelism": pods, "completions": pods},
            },
        )
        return [
            await self.pod(
                f"{name}-{index}",
                gang=label or name,
                size=str(pods) if size is None else size,
                template=template,
                job=job,
                slot=str(index),
                **more,
            )
            for index in range(pods)
        ]

    async def pod(
        self,
        name: str,
        *,
        gang: str,
        size: str = "",
        template: str = "one",
        claim: str = "",
        job: Object | None = None,
        slot: str = "",
        scheduler: str = "default-scheduler",
        scope: str = "",
        namespace: str = SPACE,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Object:
        """A pod of a gang. spec: more fields of its spec."""
        meta: Object = {"name": name, "namespace": namespace, "labels": {LABEL: gang}}
        meta["annotations"] = {**({ANNOTATION_SIZE: size} if size else {}), **(annotations or {})}
        if scope:
            meta["annotations"][ANNOTATION_SCOPE] = scope
        if slot:
            meta["labels"]["batch.kubernetes.io/job-completion-index"] = slot
        if job is not None:
            owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
            owner |= {"name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
            meta["ownerReferences"] = [owner]
        entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        container = {"name": "main", "image": "none"}
        return await self.api.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta,
                "spec": {
                    "schedulerName": scheduler,
                    "containers": [container],
                    "resourceClaims": [{"name": "gpu", **entry}],
                    **spec,
                },
            },
        )

    async def claim(self, name: str, gpus: int) -> Object:
        """A claim that a user makes."""
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": gpus}}
        return await self.api.create(
            CLAIMS,
            {
                "apiVersion": CLAIMS.api_version,
                "kind": CLAIMS.kind,
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {"devices": {"requests": [request]}},
            },
        )

    async def read_claim(self, name: str) -> Object:
        return await self.api.get(CLAIMS, name, namespace=SPACE)

    async def gang(self, name: str, **spec: Any) -> Object:
        """A Gang that a user writes."""
        return await self.api.create(
            GANGS,
            {
                "apiVersion": GANGS.api_version,
                "kind": GANGS.kind,
                "metadata": {"name": name, "namespace": SPACE},
                "spec": spec,
            },
        )

    async def see(self, name: str) -> GangObject | None:
        try:
            return gang_of(await self.api.get(GANGS, name, namespace=SPACE))
        except ApiNotFoundError:
            return None

    async def phase(self, name: str, phase: str) -> GangObject:
        """Waits for a phase."""
        return await self._becomes(name, phase, lambda found: found.status.phase == phase)

    async def waits(self, name: str) -> GangObject:
        """Waits until a gang waits and the planner has said why: before that it waits, too."""

        def is_planned(found: GangObject) -> bool:
            return found.status.phase == "Waiting" and condition(found, "Placed")[0] == "False"

        return await self._becomes(name, "Waiting, with a reason", is_planned)

    async def _becomes(
        self, name: str, what: str, holds: Callable[[GangObject], bool]
    ) -> GangObject:
        seen: list[GangObject] = []

        async def reached() -> bool:
            found = await self.see(name)
            if found is not None:
                seen[:] = [found]
            return found is not None and holds(found)

        try:
            await until(f"gang {name} is {what}", reached)
        except AssertionError as error:
            raise AssertionError(f"{error}; last seen {seen}") from None
        return seen[0]

    async def bound(self, gang: str) -> Mapping[str, str]:
        """Pods of a gang that are bound, and where."""
        listing = await self.api.list(PODS, namespace=SPACE, labels=f"{LABEL}={gang}")
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in listing.items
            if pod["spec"].get("nodeName")
        }

    async def allocated(self) -> dict[str, list[tuple[str, str]]]:
        """Claims with an allocation, and their devices."""
        listing = await self.api.list(CLAIMS)
        found = {claim["metadata"]["name"]: devices_of(claim) for claim in listing.items}
        return {name: devices for name, devices in found.items() if devices}

    async def rules(self) -> list[Object]:
        return list((await self.api.list(TAINT_RULES)).items)

    async def end(self, pod: str, phase: str = "Succeeded") -> None:
        await self.api.patch(
            PODS, pod, {"status": {"phase": phase}}, namespace=SPACE, subresource="status"
        )

    async def start(self, pod: str) -> None:
        """A pod's containers start now."""
        status = {"phase": "Running", "startTime": datetime.now(UTC).isoformat()}
        await self.api.patch(PODS, pod, {"status": status}, namespace=SPACE, subresource="status")

    async def events(self, reason: str) -> list[str]:
        listing = await self.api.list(EVENTS)
        return [one["note"] for one in listing.items if one["reason"] == reason]


def condition(gang: GangObject, type_: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    found = gang.status.condition(type_)
    assert found is not None, gang.status
    return found.status, found.reason, found.message


def says(gang: GangObject | None, type_: str, reason: str) -> bool:
    """Whether a condition gives that reason. Of a gang that was just made nothing is said yet."""
    found = None if gang is None else gang.status.condition(type_)
    return found is not None and found.reason == reason


def _class(name: str) -> Object:
    expression = f'device.driver == "{DRIVER}"'
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
