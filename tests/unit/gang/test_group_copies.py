"""Copies of other projects' groups: APIs come and go, and their absence is nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from dragoon.gang.group_copies import GroupCopies
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Key
from dragoon.kube.port import COSCHEDULING_GROUPS, JOB_SETS, POD_GROUPS, Resource
from tests.scenario.gang.others import serve
from tests.scenario.pluginbed import until

KINDS = (POD_GROUPS, COSCHEDULING_GROUPS, JOB_SETS)


class Heard:
    """What a subscriber is told."""

    def __init__(self, copies: GroupCopies) -> None:
        self.changes: list[tuple[Resource, Key | None]] = []
        copies.subscribe(lambda resource, key: self.changes.append((resource, key)))


@contextlib.asynccontextmanager
async def running(api: MemoryApi) -> AsyncIterator[GroupCopies]:
    copies = GroupCopies(api, KINDS, again=0.01, patience=0.2)
    task = asyncio.create_task(copies.run())
    try:
        yield copies
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def put(api: MemoryApi, resource: Resource, name: str) -> None:
    meta = {"name": name, "namespace": "team"}
    await api.create(
        resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
    )


async def test_an_api_that_is_not_there_is_never_listed_and_says_so_when_asked() -> None:
    api = MemoryApi()
    async with running(api) as copies:
        await copies.settled()
        looks = len([call for call in api.faults.calls if call.verb == "groups"])
        await until("it has looked again", lambda: _looks(api) > looks + 2)
        assert not [call for call in api.faults.calls if call.verb in {"list", "watch"}]
        assert not copies.informers
        assert copies.find(POD_GROUPS, "team", "a") is None
        assert copies.missing(POD_GROUPS) == (
            "the API server does not have scheduling.k8s.io/v1beta1"
        )
        # PriorityClasses are in a version of the same API group.
        assert copies.refused(POD_GROUPS) == ""


def _looks(api: MemoryApi) -> int:
    return len([call for call in api.faults.calls if call.verb == "groups"])


async def test_before_anything_is_known_that_is_what_is_said() -> None:
    copies = GroupCopies(MemoryApi(), KINDS, again=60)
    assert copies.missing(JOB_SETS) == "the API server has not been asked yet"
    assert copies.refused(JOB_SETS) == ""


async def test_an_api_that_comes_later_is_followed_and_one_that_goes_is_forgotten() -> None:
    api = MemoryApi()
    async with running(api) as copies:
        await copies.settled()
        heard = Heard(copies)
        await put(api, COSCHEDULING_GROUPS, "a")
        serve(api, COSCHEDULING_GROUPS)
        await until("it is found", lambda: copies.find(COSCHEDULING_GROUPS, "team", "a"))
        assert copies.missing(COSCHEDULING_GROUPS) == ""
        assert (COSCHEDULING_GROUPS, Key("team", "a")) in heard.changes
        heard.changes.clear()
        api.more_plurals.clear()
        await until("it is gone", lambda: not copies.informers)
        assert copies.find(COSCHEDULING_GROUPS, "team", "a") is None
        assert (COSCHEDULING_GROUPS, None) in heard.changes


async def test_another_version_is_named_and_not_followed() -> None:
    api = MemoryApi()
    serve(api, JOB_SETS, version="v1")
    async with running(api) as copies:
        await copies.settled()
        assert copies.refused(JOB_SETS) == "found v1, allowed is v1alpha2"
        assert not copies.informers
        serve(api, JOB_SETS)
        await until("ours is there too", lambda: JOB_SETS in copies.informers)
        assert copies.refused(JOB_SETS) == ""


async def test_a_kind_that_cannot_be_listed_keeps_nobody_waiting_and_says_why() -> None:
    api = MemoryApi()
    serve(api, JOB_SETS)
    fault = api.faults.fail(verb="list", resource=JOB_SETS, times=None)
    async with running(api) as copies:
        await copies.settled()
        why = "the list could not be read: the API server is away"
        await until("it says why", lambda: why in copies.missing(JOB_SETS))
        fault.lift()
        await until("it is listed", lambda: copies.missing(JOB_SETS) == "")


async def test_an_api_server_that_is_away_changes_nothing() -> None:
    api = MemoryApi()
    serve(api, JOB_SETS)
    await put(api, JOB_SETS, "s")
    async with running(api) as copies:
        await until("it is found", lambda: copies.find(JOB_SETS, "team", "s"))
        fault = api.faults.fail(times=None, when=lambda call: call.verb == "groups")
        await asyncio.wait_for(fault.reached.wait(), 60)
        assert copies.find(JOB_SETS, "team", "s") is not None
        fault.lift()
