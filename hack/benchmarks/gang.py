"""A gang of many pods, created to all bound, beside the same pods with stock kube-scheduler.

Both on a fresh control plane of the same machine and rates, both watched by the same client. The
gang's fence and wait are part of its time. While it is placed its state is sampled: a gang of which
one pod is bound while a claim of another has no devices is a partial one.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.spending import Spending
from dragoon.api import gang
from dragoon.api.names import CLASS_SIMULATED
from dragoon.kube.client import KubeClient
from dragoon.kube.connecting import connect
from dragoon.kube.port import CLAIMS, GANGS, PODS, Object, Resource
from realcluster.cluster import Cluster
from testbed import controller
from testbed.controller import Controller
from testbed.fleet import NAMESPACE, Fleet, control_plane, slices_of

_SAMPLE_S = 0.1
_SCALE, _DEFAULT = (
    ("--kube-api-qps", "1000", "--kube-api-burst", "2000", "--scheduler-qps", "1000"),
    (),
)


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench gang`."""
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=512)
    parser.add_argument("--gpus", type=int, default=8, help="of each pod")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--machine", default="dgx-h100", help="what each node simulates")
    parser.add_argument("--forms", default="whole", help="what each node publishes")
    parser.add_argument(
        "--default-rates", action="store_true", help="all clients keep their default rates"
    )
    parser.add_argument("--only-gang", action="store_true", help="leave stock out: no ratio")
    parser.add_argument("--name", default="bench", help="name of the cluster")


def run(chosen: argparse.Namespace) -> None:
    """Times both, and prints as the last line both times and their ratio."""
    stock: list[float] = []
    ours: list[float] = []
    for round_ in range(chosen.rounds):
        if not chosen.only_gang:
            stock.append(asyncio.run(_stock(chosen)))
            print(f"round {round_ + 1}: stock: {stock[-1]:.2f} s", file=sys.stderr)
        ours.append(asyncio.run(_gang(chosen)))
        print(f"round {round_ + 1}: gang: {ours[-1]:.2f} s", file=sys.stderr)
    rates = "default rates" if chosen.default_rates else "qps 1000"
    print(
        f"{chosen.pods} pods x {chosen.gpus} GPUs, {chosen.nodes} nodes, {rates}, until all bound"
    )
    mine = statistics.median(ours)
    if stock:
        base = statistics.median(stock)
        print(f"stock {base:.2f} s   gang {mine:.2f} s   ratio {base / mine:.2f}")
    else:
        print(f"gang {mine:.2f} s")


async def _stock(chosen: argparse.Namespace) -> float:
    with control_plane(chosen.name, default_rates=chosen.default_rates) as state:
        kubeconfig = Path(state.kubeconfigs["admin"])
        fleet, client = await Fleet.connect(kubeconfig), await connect(kubeconfig)
        try:
            await _prepare(fleet, chosen)
            spending, sampling = Spending(state), Sampling(client)
            with spending.measured():
                async with sampling.running():
                    took = await fleet.bind(chosen.pods, chosen.gpus, CLASS_SIMULATED)
            print(f"stock: {spending}")
            return took
        finally:
            await client.close()
            await fleet.close()


async def _gang(chosen: argparse.Namespace) -> float:
    with (
        control_plane(chosen.name, default_rates=chosen.default_rates) as state,
        tempfile.TemporaryDirectory(prefix="dragoon-bench-") as folder,
    ):
        kubeconfig = Path(state.kubeconfigs["admin"])
        controller.install(Cluster.open(chosen.name))
        fleet, client = await Fleet.connect(kubeconfig), await connect(kubeconfig)
        rates = _DEFAULT if chosen.default_rates else _SCALE
        process = Controller(kubeconfig, Path(folder), *rates)
        try:
            await _prepare(fleet, chosen)
            await asyncio.to_thread(process.start_and_wait)
            ready = process.resident_mib
            sampling = Sampling(client)
            spending = Spending(state, {"controller": process.pid})
            timeline = Timeline(client)
            with spending.measured():
                async with sampling.running(), timeline.running():
                    took = await fleet.bind(
                        chosen.pods, chosen.gpus, CLASS_SIMULATED, labels(chosen)
                    )
            print(f"gang: {spending}")
            print(f"gang: {timeline}, all bound {took:.1f} s")
            print(
                f"controller: ready after {process.seconds_to_ready:.1f} s with {ready} MiB, "
                f"{process.resident_mib} MiB at the end; {sampling.samples} samples, "
                f"{sampling.partial} of them with a partial gang"
            )
            return took
        finally:
            process.stop()
            await client.close()
            await fleet.close()


def labels(chosen: argparse.Namespace) -> dict[str, Any]:
    """What makes a pod a member of the gang."""
    return {
        "labels": {gang.LABEL: "bench"},
        "annotations": {
            gang.ANNOTATION_SIZE: str(chosen.pods),
            gang.ANNOTATION_SCOPE: "name",  # these pods have no owner
        },
    }


async def _prepare(fleet: Fleet, chosen: argparse.Namespace) -> None:
    names = [f"node-{index:05d}" for index in range(chosen.nodes)]
    await fleet.prepare(names, slices_of(names, chosen.machine, chosen.forms))


class Timeline:
    """When a Gang took which step of its plan, in seconds from the first pod."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._taken: list[tuple[str, float]] = []

    def __str__(self) -> str:
        return ", ".join(f"{step} {after:.1f}" for step, after in self._taken)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks while something else goes on."""
        listing = await self._client.list(GANGS, namespace=NAMESPACE)
        looking = asyncio.create_task(self._follow(listing.resource_version))
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _follow(self, version: str) -> None:
        started = time.monotonic()
        while True:
            async for event in self._client.watch(
                GANGS, resource_version=version, namespace=NAMESPACE
            ):
                version = event.object["metadata"]["resourceVersion"]
                if event.kind not in {"ADDED", "MODIFIED"}:
                    continue
                step = ((event.object.get("status") or {}).get("plan") or {}).get("step", "made")
                if not self._taken or self._taken[-1][0] != step:
                    self._taken.append((step, time.monotonic() - started))


class Sampling:
    """Looks at pods and claims, as watches show them, ten times a second."""

    def __init__(self, client: KubeClient) -> None:
        self.samples = 0
        self.partial = 0
        self._client = client
        self._bound: set[str] = set()
        self._pods: set[str] = set()
        self._allocated: set[str] = set()
        self._claims: set[str] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks while something else goes on."""
        async with asyncio.TaskGroup() as tasks:
            looking = tasks.create_task(self._run())
            yield
            looking.cancel()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(CLAIMS, self._claims, self._allocated, _is_allocated))
            tasks.create_task(self._follow(PODS, self._pods, self._bound, _is_bound))
            tasks.create_task(self._sample())

    async def _follow(
        self,
        resource: Resource,
        known: set[str],
        done: set[str],
        is_done: Callable[[Object], bool],
    ) -> None:
        version = (await self._client.list(resource, namespace=NAMESPACE)).resource_version
        while True:
            async for event in self._client.watch(
                resource, resource_version=version, namespace=NAMESPACE
            ):
                version = event.object["metadata"]["resourceVersion"]
                if event.kind not in {"ADDED", "MODIFIED"}:
                    continue
                name = event.object["metadata"]["name"]
                known.add(name)
                (done.add if is_done(event.object) else done.discard)(name)

    async def _sample(self) -> None:
        while True:
            self.samples += 1
            unallocated = len(self._claims) - len(self._allocated)
            if self._bound and unallocated:
                self.partial += 1
            await asyncio.sleep(_SAMPLE_S)


def _is_allocated(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))
