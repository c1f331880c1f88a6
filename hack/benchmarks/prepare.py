"""Prepare and unprepare over the socket, beside a minimal Go driver that does the same writes.

Both run against one real API server; the calls take turns, in random order. The same calls on
tmpfs show what fsync costs; each process tells what its GETs cost, until the body has been read
(Dragoon's are decoded too, which takes some microseconds). "slow" is tmpfs with waits put
into both drivers, at each GET of a claim and at each fsync: there the parallelism of the code
shows, and not how many CPUs this machine has. On a machine that others use too, the CPU time of a
prepare with its unprepare says more than any of the times. Dragoon runs as in a pod: no kubeconfig, its account
mounted. Shares and MIG devices follow in a table of their own (`prepare_forms`).
"""

import argparse
import asyncio
import contextlib
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import prepare_forms
from benchmarks.contenders import Contender, Waits, dragoon, minimal
from dragoon.api.claims import ClaimRef
from dragoon.kubelet.client import ClaimAnswer, DraClient
from dragoon.kubelet.messages import DRA_VERSIONS
from dragoon.kubelet.standin import KubeletStandIn
from testbed.fleet import Fleet, control_plane

_NODE = "bench-node"
_GPUS = 8
_DISK, _MEMORY = "/var/tmp", "/dev/shm"  # noqa: S108 - scratch folders are made in them
_MS = 1000

_Call = Callable[[Sequence[ClaimRef]], Awaitable[dict[str, ClaimAnswer]]]


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `bench prepare`."""
    parser.add_argument("--calls", type=int, default=400, help="per driver and place, one caller")
    parser.add_argument("--bursts", type=int, default=50, help="eight claims at once")
    parser.add_argument("--api-ms", type=float, default=5.0, help="a GET in the place `slow`")
    parser.add_argument("--fsync-ms", type=float, default=5.0, help="an fsync in the place `slow`")
    prepare_forms.options(parser)
    parser.add_argument("--name", default="bench", help="name of the cluster")


@dataclass
class Seconds:
    """What was measured of one contender in one place. cpu: of a prepare with its unprepare."""

    start: float = 0.0
    cpu: float = 0.0
    prepare: list[float] = field(default_factory=list)
    unprepare: list[float] = field(default_factory=list)
    burst: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    api: list[float] = field(default_factory=list)
    memory: tuple[float, float] = (0.0, 0.0)


@dataclass
class Runner:
    """A contender that is registered, and eight claims, one for each of its devices."""

    contender: Contender
    client: DraClient
    claims: list[ClaimRef]
    seconds: Seconds

    async def call(self, claim: ClaimRef) -> None:
        """One prepare and one unprepare."""
        self.seconds.prepare.append(await self._timed(self.client.prepare, [claim]))
        self.seconds.unprepare.append(await self._timed(self.client.unprepare, [claim]))

    async def burst(self) -> None:
        """All claims at once, as from eight pods and as from one; each time their unprepares."""
        started = time.perf_counter()
        await asyncio.gather(*(self.client.prepare([claim]) for claim in self.claims))
        self.seconds.burst.append(time.perf_counter() - started)
        await asyncio.gather(*(self.client.unprepare([claim]) for claim in self.claims))
        started = time.perf_counter()
        answers = await self.client.prepare(self.claims)
        self.seconds.together.append(time.perf_counter() - started)
        assert not any(answer.error for answer in answers.values()), answers
        await self.client.unprepare(self.claims)

    async def _timed(self, call: _Call, claims: Sequence[ClaimRef]) -> float:
        started = time.perf_counter()
        answers = await call(claims)
        took = time.perf_counter() - started
        (answer,) = answers.values()
        assert not answer.error, answer.error
        return took


def run(chosen: argparse.Namespace) -> None:
    """Measures in every place and prints the table and the ratios."""
    slow = Waits(chosen.api_ms, chosen.fsync_ms)
    places = {"disk": (_DISK, Waits()), "tmpfs": (_MEMORY, Waits()), "slow": (_MEMORY, slow)}
    with control_plane(chosen.name) as state:
        kubeconfig = Path(state.kubeconfigs["admin"])
        results = {
            place: asyncio.run(_measure(chosen, kubeconfig, Path(folder), waits))
            for place, (folder, waits) in places.items()
        }
        forms = prepare_forms.measure(chosen, kubeconfig, _MEMORY)
    _print(results)
    prepare_forms.show(forms, chosen.create_ms)


async def _measure(
    chosen: argparse.Namespace, kubeconfig: Path, place: Path, waits: Waits
) -> dict[str, Seconds]:
    with _folders(place) as (ours, theirs):
        contenders = (
            dragoon("gpu.dragoon.dev", _NODE, kubeconfig, ours, waits),
            minimal("minimal.dragoon.dev", _NODE, kubeconfig, theirs, waits),
        )
        async with contextlib.AsyncExitStack() as stack:
            runners = [
                await stack.enter_async_context(_running(contender, kubeconfig))
                for contender in contenders
            ]
            for runner in runners:
                await runner.call(runner.claims[0])  # connections are made, caches are warm
                runner.seconds.prepare.clear()
                runner.seconds.unprepare.clear()
            for runner in runners:
                runner.seconds.cpu = -runner.contender.cpu_seconds()
            for number in range(chosen.calls):
                for runner in random.sample(runners, len(runners)):
                    await runner.call(runner.claims[number % _GPUS])
            for runner in runners:
                runner.seconds.api = runner.contender.api_seconds()
                runner.seconds.cpu += runner.contender.cpu_seconds()
                runner.seconds.cpu /= chosen.calls
            for _ in range(chosen.bursts):
                for runner in random.sample(runners, len(runners)):
                    await runner.burst()
            for runner in runners:
                runner.seconds.memory = runner.contender.memory_mib()
        return {runner.contender.name: runner.seconds for runner in runners}


@contextlib.contextmanager
def _folders(place: Path) -> Iterator[tuple[Path, Path]]:
    """Two short scratch folders: Unix sockets allow 107 bytes."""
    with (
        tempfile.TemporaryDirectory(dir=place, prefix="db") as ours,
        tempfile.TemporaryDirectory(dir=place, prefix="db") as theirs,
    ):
        yield Path(ours), Path(theirs)


@contextlib.asynccontextmanager
async def _running(contender: Contender, kubeconfig: Path) -> AsyncIterator[Runner]:
    fleet = await Fleet.connect(kubeconfig)
    kubelet = KubeletStandIn(contender.kubelet_root)
    watching = asyncio.create_task(kubelet.run())
    seconds = Seconds()
    try:
        await fleet.ensure_node(_NODE)
        started = time.perf_counter()
        contender.start()
        devices = await fleet.until_published(contender.driver)
        seconds.start = time.perf_counter() - started
        await kubelet.wait_registered(contender.driver)
        claims = [await fleet.allocated_claim(contender.driver, *device) for device in devices]
        async with DraClient(kubelet.calls_go_to(contender.driver), DRA_VERSIONS[0]) as client:
            yield Runner(contender, client, claims, seconds)
        await fleet.forget(claims, contender.driver)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        contender.stop()
        await fleet.close()


def _print(results: dict[str, dict[str, Seconds]]) -> None:
    names = list(next(iter(results.values())))
    print(f"{'':<34}{names[0]:>12}{names[1]:>12}{'ratio':>8}")
    for place, by_name in results.items():
        ours, theirs = (by_name[name] for name in names)
        rows = {
            f"prepare p50, {place}": [_percentile(s.prepare, 50) for s in (ours, theirs)],
            f"prepare p99, {place}": [_percentile(s.prepare, 99) for s in (ours, theirs)],
            "  of it GET of the claim p50": [_percentile(s.api, 50) for s in (ours, theirs)],
            f"unprepare p50, {place}": [_percentile(s.unprepare, 50) for s in (ours, theirs)],
            f"unprepare p99, {place}": [_percentile(s.unprepare, 99) for s in (ours, theirs)],
            f"CPU of both calls, {place}": [s.cpu for s in (ours, theirs)],
            f"8 claims of 8 pods p50, {place}": [_percentile(s.burst, 50) for s in (ours, theirs)],
            f"8 claims of a pod p50, {place}": [
                _percentile(s.together, 50) for s in (ours, theirs)
            ],
        }
        for label, (a, b) in rows.items():
            print(f"{label:<34}{a * _MS:>9.2f} ms{b * _MS:>9.2f} ms{a / b:>8.2f}")
    _print_summary(names, results)


def _print_summary(names: list[str], results: dict[str, dict[str, Seconds]]) -> None:
    disk, tmpfs = results["disk"], results["tmpfs"]
    without = [
        _percentile(tmpfs[name].prepare, 50) - _percentile(tmpfs[name].api, 50) for name in names
    ]
    label = "prepare p50 without fsync and GET"
    print(f"{label:<34}{without[0] * _MS:>9.2f} ms{without[1] * _MS:>9.2f} ms", end="")
    print(f"{without[0] / without[1]:>8.2f}")
    for place, by_name in results.items():
        for shape, values in (("8 pods", "burst"), ("a pod", "together")):
            label = f"8 claims of {shape} / one, {place}"
            times = [_eight_to_one(by_name[name], values) for name in names]
            ratio = times[0] / times[1]
            print(f"{label:<34}{times[0]:>10.2f} x{times[1]:>10.2f} x{ratio:>8.2f}")
            each = [one / _GPUS for one in times]
            print(f"{'  for each claim':<34}{each[0]:>10.2f} x{each[1]:>10.2f} x{ratio:>8.2f}")
    for name in names:
        rss, anonymous = disk[name].memory
        print(
            f"{name}: start to first publish {disk[name].start:.2f} s; resident {rss:.0f} MiB "
            f"({anonymous:.0f} anonymous)"
        )


def _eight_to_one(seconds: Seconds, values: str) -> float:
    return _percentile(getattr(seconds, values), 50) / _percentile(seconds.prepare, 50)


def _percentile(values: Sequence[float], per_cent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[per_cent - 1]
