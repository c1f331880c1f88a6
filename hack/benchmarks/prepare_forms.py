"""Whole GPUs, shares and MIG devices prepared by Dragoon's plugin, one by one and on eight cards.

The cards are simulated: what they cost by themselves is a wait at each GPU instance that is made
(`--create-ms`), as a driver takes its time there. With it the parallelism of the code shows: eight
instances on eight cards take about as long as one.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec import _core

from benchmarks.contenders import Contender, dragoon
from dragoon.api.claims import ClaimRef
from dragoon.api.forms import Form
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.state import Effect, Fault
from dragoon.kubelet.client import DraClient
from dragoon.kubelet.messages import DRA_VERSIONS
from dragoon.kubelet.standin import KubeletStandIn
from testbed.fleet import Fleet

_DRIVER: Final = "gpu.dragoon.dev"
_NODE: Final = "bench-forms"
_CREATE: Final = "nvmlDeviceCreateGpuInstanceWithPlacement"
_DEVICES: Final = {
    "whole": re.compile(r"gpu-[0-9a-f-]+"),
    "share": re.compile(r"gpu-[0-9a-f-]+-shared"),
    "mig": re.compile(r"gpu-[0-9a-f-]+-mig-3g[a-z0-9]+-0"),
}
"""One device of each form on each card."""
_MS: Final = 1000


@dataclass
class Times:
    """Seconds of one form. api and effects are parts of a prepare, as the plugin tells them."""

    prepare: list[float] = field(default_factory=list)
    unprepare: list[float] = field(default_factory=list)
    burst: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    slow_burst: list[float] = field(default_factory=list)
    api: list[float] = field(default_factory=list)
    effects: list[float] = field(default_factory=list)


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of these rows."""
    parser.add_argument("--form-calls", type=int, default=80, help="per form, one caller")
    parser.add_argument(
        "--form-bursts", type=int, default=10, help="one claim on each card at once"
    )
    parser.add_argument(
        "--create-ms", type=float, default=200.0, help="how long the driver makes a GPU instance"
    )


def measure(chosen: argparse.Namespace, kubeconfig: Path, folder: str) -> dict[str, Times]:
    """Runs the plugin below a scratch folder there, and times the forms one after the other."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="db") as root:
        return asyncio.run(_measure(chosen, kubeconfig, Path(root)))


async def _measure(chosen: argparse.Namespace, kubeconfig: Path, root: Path) -> dict[str, Times]:
    contender = dragoon(_DRIVER, _NODE, kubeconfig, root, more=_settings())
    found = {form: Times() for form in _DEVICES}
    async with _running(contender, kubeconfig) as (fleet, client):
        devices = await fleet.until_published(
            _DRIVER, lambda names: _complete(names, len(_DEVICES))
        )
        for form, times in found.items():
            mine = [one for one in devices if _DEVICES[form].fullmatch(one[1])]
            claims = [await _claim(fleet, form, *one) for one in mine]
            await _time_each(client, claims, times, chosen.form_calls)
            _read_parts(contender, form, times)
            for _ in range(chosen.form_bursts):
                times.burst.append(await _at_once(client, claims))
            await _time_slow(client, claims, times, chosen, Hardware(root / "gpus.json"))
            await fleet.delete(claims)
        await fleet.forget((), _DRIVER)
    return found


def _settings() -> dict[str, str]:
    """Any shared library will do for the tier hami: nothing is started that would load it."""
    library = Path(_core.__file__)
    checksum = hashlib.sha256(library.read_bytes()).hexdigest()
    forms = ",".join(Form)
    return {"forms": forms, "hami_library": str(library), "hami_sha256": checksum}


def _complete(names: Sequence[str], forms: int) -> bool:
    """Shares are published when the tiers have been probed: a moment after the rest."""
    found = {form for name in names for form, wanted in _DEVICES.items() if wanted.fullmatch(name)}
    return len(found) == forms


async def _claim(fleet: Fleet, form: str, pool: str, device: str) -> ClaimRef:
    """Named after its form, by which the plugin's log is read."""
    result = {"pool": pool, "device": device}
    if form != "share":
        return await fleet.allocated_claim(_DRIVER, pool, device, prefix=f"{form}-")
    share = {"shareID": str(uuid.uuid4()), "consumedCapacity": {"memory": "10Gi", "cores": "0"}}
    return await fleet.pods_own_claim(_DRIVER, _NODE, result | share, prefix=f"{form}-")


async def _time_each(
    client: DraClient, claims: Sequence[ClaimRef], times: Times, calls: int
) -> None:
    await _prepare(client, claims[:1])  # connections are made, caches are warm
    await _unprepare(client, claims[:1])
    for number in range(calls):
        one = [claims[number % len(claims)]]
        times.prepare.append(await _prepare(client, one))
        times.unprepare.append(await _unprepare(client, one))


async def _time_slow(
    client: DraClient,
    claims: Sequence[ClaimRef],
    times: Times,
    chosen: argparse.Namespace,
    hardware: Hardware,
) -> None:
    """The same with a driver that takes its time; only MIG devices make it do so."""
    hardware.fail(Fault(_CREATE, Effect.SLOW, milliseconds=chosen.create_ms))
    for _ in range(chosen.form_bursts):
        times.slow.append(await _prepare(client, claims[:1]))
        await _unprepare(client, claims[:1])
        times.slow_burst.append(await _at_once(client, claims))
    hardware.lift(_CREATE)


async def _at_once(client: DraClient, claims: Sequence[ClaimRef]) -> float:
    """As from one pod for each claim; then their unprepares."""
    started = time.perf_counter()
    await asyncio.gather(*(_prepare(client, [one]) for one in claims))
    took = time.perf_counter() - started
    await asyncio.gather(*(_unprepare(client, [one]) for one in claims))
    return took


async def _prepare(client: DraClient, claims: Sequence[ClaimRef]) -> float:
    started = time.perf_counter()
    answers = await client.prepare(claims)
    took = time.perf_counter() - started
    assert not any(answer.error for answer in answers.values()), answers
    return took


async def _unprepare(client: DraClient, claims: Sequence[ClaimRef]) -> float:
    started = time.perf_counter()
    answers = await client.unprepare(claims)
    took = time.perf_counter() - started
    assert not any(answer.error for answer in answers.values()), answers
    return took


def _read_parts(contender: Contender, form: str, times: Times) -> None:
    """Of the calls one by one: the plugin writes a line for each."""
    for line in contender.lines():
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("event") == "prepared" and f"/{form}-" in entry["claim"]:
            times.api.append(entry["api_s"])
            times.effects.append(entry["effects_s"])


@contextlib.asynccontextmanager
async def _running(
    contender: Contender, kubeconfig: Path
) -> AsyncIterator[tuple[Fleet, DraClient]]:
    fleet = await Fleet.connect(kubeconfig)
    kubelet = KubeletStandIn(contender.kubelet_root)
    watching = asyncio.create_task(kubelet.run())
    try:
        await fleet.ensure_node(_NODE)
        contender.start()
        await kubelet.wait_registered(_DRIVER)
        async with DraClient(kubelet.calls_go_to(_DRIVER), DRA_VERSIONS[0]) as client:
            yield fleet, client
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        contender.stop()
        await fleet.close()


def show(found: dict[str, Times], create_ms: float) -> None:
    """Prints the rows: milliseconds by form, and eight at once in times of one."""
    print()
    print(f"{'Dragoon by form, tmpfs':<34}" + "".join(f"{form:>12}" for form in found))
    for label, values in {
        "prepare p50": [_percentile(one.prepare, 50) for one in found.values()],
        "prepare p99": [_percentile(one.prepare, 99) for one in found.values()],
        "  of it reading from the API p50": [_percentile(one.api, 50) for one in found.values()],
        "  of it effects, with locks p50": [_percentile(one.effects, 50) for one in found.values()],
        "unprepare p50": [_percentile(one.unprepare, 50) for one in found.values()],
        "unprepare p99": [_percentile(one.unprepare, 99) for one in found.values()],
        "8 claims on 8 cards p50": [_percentile(one.burst, 50) for one in found.values()],
        f"prepare p50, {create_ms:g} ms a GPU instance": [
            _percentile(one.slow, 50) for one in found.values()
        ],
        "8 claims on 8 cards p50, the same": [
            _percentile(one.slow_burst, 50) for one in found.values()
        ],
    }.items():
        print(f"{label:<36}" + "".join(f"{value * _MS:>9.2f} ms" for value in values))
    ratios = [_percentile(o.slow_burst, 50) / _percentile(o.slow, 50) for o in found.values()]
    print(f"{'8 cards / one, the same':<36}" + "".join(f"{ratio:>10.2f} x" for ratio in ratios))


def _percentile(values: Sequence[float], per_cent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[per_cent - 1]
