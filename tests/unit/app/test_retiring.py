"""Before and after Dragoon is taken out of a cluster."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.gang import GATE
from dragoon.api.names import DRIVER_NAME, FINALIZER
from dragoon.app import retiring
from dragoon.cli import main
from dragoon.errors import ApiUnavailableError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, GANGS, PODS, SLICES
from dragoon.kube.serving import EmbeddedApi


async def claim(
    api: MemoryApi, name: str, *, driver: str = "", pods: tuple[str, ...] = (), **more: Any
) -> None:
    wanted = {"requests": [{"name": "g", "exactly": {"deviceClassName": DRIVER_NAME, **more}}]}
    meta = {"name": name, "namespace": "team", "finalizers": [FINALIZER, "other.example/kept"]}
    await api.create(CLAIMS, {"metadata": meta, "spec": {"devices": wanted}})
    if driver:
        result = {"request": "g", "driver": driver, "pool": "n", "device": "gpu-0"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
        }
        await api.patch(CLAIMS, name, {"status": status}, namespace="team", subresource="status")


async def published(api: MemoryApi, driver: str) -> None:
    await api.create(
        SLICES,
        {
            "metadata": {"generateName": "s-"},
            "spec": {
                "driver": driver,
                "nodeName": "n",
                "pool": {"name": driver, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        },
    )


async def drivers(api: MemoryApi) -> list[str]:
    return [one["spec"]["driver"] for one in (await api.list(SLICES)).items]


async def at_once(seconds: float) -> None:
    del seconds


async def test_holders_are_the_claims_with_devices_of_this_driver_and_their_pods() -> None:
    api = MemoryApi()
    await claim(api, "b", driver=DRIVER_NAME, pods=("two", "one"))
    await claim(api, "a", driver=DRIVER_NAME)
    await claim(api, "others", driver="net.example.com", pods=("three",))
    await claim(api, "waits")
    assert await retiring.holders(api, DRIVER_NAME) == [
        retiring.Holder("team", "a", ()),
        retiring.Holder("team", "b", ("one", "two")),
    ]


async def test_what_is_left_of_us_goes_and_nothing_of_others() -> None:
    api = MemoryApi()
    await published(api, DRIVER_NAME)
    await published(api, "net.example.com")
    await claim(api, "idle")
    await claim(api, "theirs", deviceClassName="net.example.com")
    await claim(api, "busy", driver=DRIVER_NAME)
    await api.create(GANGS, {"metadata": {"name": "g", "namespace": "team"}, "spec": {"size": 2}})
    await api.create(
        PODS,
        {
            "metadata": {"name": "p", "namespace": "team"},
            "spec": {"containers": [], "schedulingGates": [{"name": GATE}, {"name": "kept"}]},
        },
    )
    done = await retiring.retire(api, DRIVER_NAME, pause=at_once)
    assert (done.released.pods, done.slices, done.claims, done.gangs) == (1, 1, 1, 1)
    assert await drivers(api) == ["net.example.com"]
    pod = await api.get(PODS, "p", namespace="team")
    assert pod["spec"]["schedulingGates"] == [{"name": "kept"}]
    kept = {
        one["metadata"]["name"]: one["metadata"].get("finalizers")
        for one in (await api.list(CLAIMS)).items
    }
    both = [FINALIZER, "other.example/kept"]
    assert kept == {"idle": ["other.example/kept"], "theirs": both, "busy": both}
    again = await retiring.retire(api, DRIVER_NAME, pause=at_once)
    assert (again.released.pods, again.slices, again.claims) == (0, 0, 0)


async def test_slices_that_an_ending_plugin_writes_once_more_go_too() -> None:
    api = MemoryApi()
    await published(api, DRIVER_NAME)
    writes = 2

    async def plugin_lives(seconds: float) -> None:
        nonlocal writes
        if writes:
            writes -= 1
            await published(api, DRIVER_NAME)

    done = await retiring.retire(api, DRIVER_NAME, pause=plugin_lives)
    assert done.slices == 3
    assert await drivers(api) == []


async def test_a_plugin_that_goes_on_publishing_is_told() -> None:
    api = MemoryApi()
    await published(api, DRIVER_NAME)

    async def plugin_lives(seconds: float) -> None:
        await published(api, DRIVER_NAME)

    with pytest.raises(ApiUnavailableError, match="a plugin still runs"):
        await retiring.retire(api, DRIVER_NAME, pause=plugin_lives)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[MemoryApi, list[str]]]:
    api = EmbeddedApi(MemoryApi())
    await api.start()
    try:
        kubeconfig = api.write_kubeconfig(folder / "kubeconfig")
        yield api.memory, ["retire", "--kubeconfig", str(kubeconfig)]
    finally:
        await api.stop()


async def test_the_command_fails_while_devices_are_held_and_says_whose_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path) as (api, command):
        assert await asyncio.to_thread(main.run, [*command, "--check"]) == 0
        assert f"no claim holds a device of {DRIVER_NAME}" in capsys.readouterr().out
        await claim(api, "b", driver=DRIVER_NAME, pods=("one",))
        assert await asyncio.to_thread(main.run, [*command, "--check"]) == 1
        said = capsys.readouterr()
        assert said.out.splitlines()[1].split() == ["team", "b", "one"]
        assert "next: kubectl delete pod one -n team" in said.err


async def test_the_command_says_what_it_removed_and_what_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(tmp_path) as (_, command):
        assert await asyncio.to_thread(main.run, command) == 0
        said = capsys.readouterr().out
    assert "slices removed: 0, finalizers removed: 0" in said
    assert "kubectl delete crd gangs.dragoon.dev" in said
