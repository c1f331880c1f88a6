"""The arbiter's watch: what it was cut off at it looks at again, whether or not anything changes."""

import asyncio
from typing import Any

from dragoon.allocator import ClusterState, Snapshot
from dragoon.gang.arbiter.watching import Arbiter
from dragoon.gang.protocol.executing import Executor
from dragoon.gang.protocol.model import RuleFacts
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import TAINT_RULES
from tests.property.gang_cluster import claim_body, slice_of

Raw = dict[str, Any]


class Cluster:
    """Two claims that hold one device."""

    def __init__(self) -> None:
        self.claims = {name: _holding(name) for name in ("a", "b")}

    def snapshot(self) -> Snapshot:
        state = ClusterState()
        state.put_slice(slice_of("node-0", 2))
        for raw in self.claims.values():
            state.put_claim(raw)
        return state.snapshot()

    def claim(self, _namespace: str, name: str) -> Raw | None:
        return self.claims.get(name)

    def pods_using(self, _namespace: str, _claim: str) -> tuple[Raw, ...]:
        return ()

    def rules(self) -> tuple[RuleFacts, ...]:
        return ()


def _holding(name: str) -> Raw:
    claim = claim_body(name, 1, None)
    claim["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    result = {"request": "gpu", "driver": "gpu.dragoon.dev", "pool": "node-0/gpu"}
    allocation = {"devices": {"results": [{**result, "device": "gpu-0"}]}}
    return {**claim, "status": {"allocation": allocation}}


async def test_a_leader_that_was_cut_off_while_it_acted_and_leads_again_acts() -> None:
    api, cluster = MemoryApi(), Cluster()
    arbiter = Arbiter(
        cluster, Executor(api), written=lambda _written: None, note=lambda _note: None
    )
    for raw in cluster.claims.values():
        arbiter.claim_changed(None, raw)
    acting = api.faults.hang(verb="create", resource=TAINT_RULES)
    first = asyncio.create_task(arbiter.run())
    await acting.reached.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    api.faults.clear()
    made = api.faults.hold_answer(verb="create", resource=TAINT_RULES)
    second = asyncio.create_task(arbiter.run())
    await asyncio.wait_for(made.reached.wait(), 60)
    assert len((await api.list(TAINT_RULES)).items) == 1
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def test_whoever_begins_to_lead_finds_what_was_given_twice_before() -> None:
    api, cluster = MemoryApi(), Cluster()
    made = api.faults.hold_answer(verb="create", resource=TAINT_RULES)
    arbiter = Arbiter(
        cluster, Executor(api), written=lambda _written: None, note=lambda _note: None
    )
    leading = asyncio.create_task(arbiter.run())
    await asyncio.wait_for(made.reached.wait(), 60)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
