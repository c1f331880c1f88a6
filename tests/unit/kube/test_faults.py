"""Faults on order: each does what it says, to the calls it names, as often as it says."""

import asyncio

import pytest

from dragoon.errors import ApiConflictError, ApiNotFoundError, ApiUnavailableError
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NODES, PODS, SLICES, Object


def node(name: str) -> Object:
    return {"metadata": {"name": name}}


async def test_the_next_calls_fail_without_effect() -> None:
    api = MemoryApi()
    fault = api.faults.fail(verb="create", resource=NODES, times=2)
    for _ in range(2):
        with pytest.raises(ApiUnavailableError):
            await api.create(NODES, node("n"))
    assert (await api.list(NODES)).items == ()
    await api.create(NODES, node("n"))
    assert fault.hits == 2


async def test_only_matching_calls_fail() -> None:
    api = MemoryApi()
    api.faults.fail(times=None, when=lambda call: call.name == "bad")
    await api.create(NODES, node("good"))
    with pytest.raises(ApiUnavailableError):
        await api.create(NODES, node("bad"))
    api.faults.fail(times=None, resource=PODS)
    assert (await api.list(NODES)).items
    with pytest.raises(ApiUnavailableError):
        await api.list(PODS)


async def test_a_fault_raises_the_error_it_was_given() -> None:
    api = MemoryApi()
    api.faults.fail(error=lambda: ApiConflictError("somebody was faster", status=409))
    with pytest.raises(ApiConflictError):
        await api.create(NODES, node("n"))


async def test_an_outage_lasts_until_it_is_lifted() -> None:
    api = MemoryApi()
    outage = api.faults.fail(times=None)
    for _ in range(5):
        with pytest.raises(ApiUnavailableError):
            await api.list(NODES)
    outage.lift()
    assert (await api.list(NODES)).items == ()


async def test_a_lost_answer_has_its_effect() -> None:
    api = MemoryApi()
    api.faults.lose_answer(verb="create")
    with pytest.raises(ApiUnavailableError):
        await api.create(NODES, node("n"))
    assert (await api.get(NODES, "n"))["metadata"]["name"] == "n"
    api.faults.lose_answer(verb="delete")
    with pytest.raises(ApiUnavailableError):
        await api.delete(NODES, "n")
    with pytest.raises(ApiNotFoundError):
        await api.get(NODES, "n")


async def test_a_hanging_call_waits_to_be_lifted() -> None:
    api = MemoryApi()
    hang = api.faults.hang(verb="create")
    call = asyncio.create_task(api.create(NODES, node("n")))
    async with asyncio.timeout(60):
        await hang.reached.wait()
    assert not call.done()
    assert (await api.list(NODES)).items == ()
    hang.lift()
    assert (await call)["metadata"]["uid"]


async def test_a_held_answer_has_its_effect_at_once() -> None:
    api = MemoryApi()
    held = api.faults.hold_answer(verb="create")
    call = asyncio.create_task(api.create(NODES, node("n")))
    async with asyncio.timeout(60):
        await held.reached.wait()
    assert await api.get(NODES, "n")
    assert not call.done()
    api.faults.clear()
    assert await call == await api.get(NODES, "n")


async def test_dropped_fields_do_not_arrive() -> None:
    api = MemoryApi()
    api.faults.drop(SLICES, "spec", "devices", "*", "taints")
    spec = {
        "driver": "gpu.dragoon.dev",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "taints": [{"key": "a/b", "effect": "NoSchedule"}]}],
    }
    made = await api.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    assert made["spec"]["devices"] == [{"name": "gpu-0"}]
    devices = {"spec": {"devices": spec["devices"]}}
    assert (await api.patch(SLICES, "s", devices))["spec"] == made["spec"]
    api.faults.clear()
    assert "taints" in (await api.patch(SLICES, "s", devices))["spec"]["devices"][0]


async def test_every_call_is_recorded_also_those_that_failed() -> None:
    api = MemoryApi()
    api.faults.fail()
    with pytest.raises(ApiUnavailableError):
        await api.create(NODES, node("n"))
    await api.list(NODES)
    assert [(call.verb, call.name) for call in api.faults.calls] == [("create", "n"), ("list", "")]
