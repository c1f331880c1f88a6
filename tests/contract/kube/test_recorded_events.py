"""What the recorder writes is accepted by every server."""

import asyncio
import contextlib

from dragoon.kube.events import WARNING, EventRecorder
from dragoon.kube.port import EVENTS, Object
from testbed.waiting import PATIENCE
from tests.contract.kube.servers import Server


async def recorded(server: Server, regarding: Object, times: int) -> None:
    recorder = EventRecorder(server.api, "gpu.dragoon.dev", "contract")
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(PATIENCE):
        for _ in range(times):
            recorder.emit(regarding, reason="Contract", note="tried", action="Try", type_=WARNING)
            await recorder.flush()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_an_event_on_a_claim_is_written_beside_it_and_counted(server: Server) -> None:
    await recorded(server, await server.claim("one"), times=3)
    (event,) = (await server.api.list(EVENTS, namespace=server.namespace)).items
    assert event["regarding"]["kind"] == "ResourceClaim"
    assert event["series"]["count"] == 3


async def test_an_event_on_a_cluster_scoped_object_is_written(server: Server) -> None:
    made = await server.slice("a")
    await recorded(server, made, times=1)
    fields = {"regarding.name": made["metadata"]["name"]}
    (event,) = (await server.api.list(EVENTS, namespace="default", fields=fields)).items
    assert event["reportingInstance"] == "contract"
    await server.api.delete(EVENTS, event["metadata"]["name"], namespace="default")
