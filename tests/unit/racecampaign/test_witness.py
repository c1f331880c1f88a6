"""How the witness sees all that happened, and what it says of devices that are held twice."""

import asyncio
from contextlib import suppress

import pytest

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, TAINT_RULES, Object
from racecampaign.history import Event, revision_of
from racecampaign.witness import ACTED_WITHIN_S, Witness


def _pod(name: str) -> Object:
    meta = {"namespace": "team", "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}}


async def test_all_that_happened_in_a_namespace_is_told_up_to_the_question() -> None:
    api = MemoryApi()
    before = await api.create(PODS, _pod("before"))
    witness = Witness(api)  # type: ignore[arg-type]  # the port is enough for it
    watching = asyncio.create_task(witness.run())
    try:
        await witness.history.seen({PODS: revision_of(before)})
        await api.create(PODS, _pod("a"))
        await api.delete(PODS, "a", namespace="team")
        async with asyncio.timeout(60):
            history = await witness.all_of("team")
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    told = [(one.object["metadata"]["name"], one.kind) for one in history if one.resource == PODS]
    assert told[:3] == [("before", "ADDED"), ("a", "ADDED"), ("a", "DELETED")]


def _held(name: str, *, device: str) -> Event:
    meta = {"namespace": "team", "name": name, "uid": name, "resourceVersion": "1"}
    result = {"driver": "d", "pool": "p", "device": device}
    status = {"allocation": {"devices": {"results": [result]}}}
    return Event.of(CLAIMS, "ADDED", {"metadata": meta, "status": status})


def test_devices_that_are_held_twice_are_counted_once_each() -> None:
    witness = Witness(MemoryApi())  # type: ignore[arg-type]  # nothing is asked here
    for name, device in (("one", "gpu-0"), ("two", "gpu-0"), ("three", "gpu-0"), ("four", "gpu-1")):
        witness.see(_held(name, device=device))
        witness.look()
    assert (witness.overlaps, witness.found) == (1, [])


@pytest.mark.parametrize("is_ruled", [False, True])
def test_somebody_has_to_act_on_a_device_that_is_held_twice_before_long(*, is_ruled: bool) -> None:
    now = 0.0
    witness = Witness(MemoryApi(), clock=lambda: now)  # type: ignore[arg-type]  # nothing is asked
    for name in ("one", "two"):
        witness.see(_held(name, device="gpu-0"))
    witness.look()
    if is_ruled:
        meta = {"name": "guard", "uid": "guard", "resourceVersion": "2"}
        rule = {"metadata": meta, "spec": {"deviceSelector": {"driver": "d", "pool": "p"}}}
        witness.see(Event.of(TAINT_RULES, "ADDED", rule))
    now = ACTED_WITHIN_S
    witness.look()
    assert witness.found == []
    now = ACTED_WITHIN_S + 1
    witness.look()
    witness.look()
    told = "device gpu-0 of p: held twice, and no rule after 5 s; held by team/one, team/two"
    assert witness.found == ([] if is_ruled else [told])
