"""Whatever happens to claims, processes and the API server: in the end their status is true."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoon.api import device_status
from dragoon.api.claims import ClaimRef
from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.kube.faults import Fault
from dragoon.kube.port import CLAIMS, EVENTS, Object
from dragoon.prepare.status.describing import devices_after
from dragoon.prepare.status.outcome import Prepared, Released
from tests.unit.prepare.scene import DRIVER, Scene, result
from tests.unit.prepare.status.desk import Desk, desk

NAMES = ("a", "b", "c")
MISSING = 9
OTHER = {"driver": "nic.example.com", "pool": "p", "device": "eth0"}
_STEPS = (
    "prepare",
    "unprepare",
    "reallocate",
    "delete",
    "neighbour",
    "outage",
    "recovery",
    "conflict",
    "lost answer",
    "slow write",
    "restart",
    "minute",
)
# What races is tried more often than what just happens.
_OFTEN = ("prepare", "slow write", "neighbour", "recovery")
steps = st.lists(
    st.tuples(st.sampled_from(_STEPS + _OFTEN * 3), st.sampled_from((*NAMES, "a", "a"))),
    max_size=40,
)
A_NEIGHBOUR_WRITES_WHILE_OURS_HANGS = [
    ("slow write", "a"),
    ("prepare", "a"),
    ("unprepare", "b"),
    ("neighbour", "a"),
    ("recovery", "a"),
]


@dataclass
class Life:
    """One node with three claims: two of GPUs that are there, one of a GPU that is not."""

    scene: Scene = field(default_factory=Scene)
    claims: dict[str, ClaimRef] = field(default_factory=dict)
    outage: Fault | None = None
    slow: Fault | None = None
    processes: int = 0
    written_by_neighbour: dict[str, int] = field(default_factory=dict)

    async def begin(self) -> None:
        for number, name in enumerate(NAMES):
            gpu = MISSING if name == "c" else number
            self.claims[name] = await self.scene.claim(name, result(gpu), result(0, **OTHER))

    async def live(self, todo: list[tuple[str, str]]) -> None:
        await self.begin()
        pending = list(todo)
        while pending:
            self.processes += 1
            async with desk(self.scene) as here:
                while pending:
                    step, name = pending.pop(0)
                    if step == "restart":
                        here.hand_over()
                        break
                    await self.step(here, step, name)
        await self.settle()

    async def step(self, here: Desk, step: str, name: str) -> None:
        claim, faults = self.claims[name], self.scene.api.faults
        match step:
            case "prepare":
                await self.tolerant(here.engine.prepare(claim))
            case "unprepare":
                await self.tolerant(here.engine.unprepare(claim))
            case "reallocate" if await self.is_there(claim):
                await here.engine.unprepare(claim)
                await self.scene.deallocate(claim)
                gpu = MISSING if name == "c" else NAMES.index(name) + 2
                await self.scene.allocate(claim, result(gpu), result(0, **OTHER))
                self.written_by_neighbour.pop(name, None)
            case "delete":
                await self.tolerant(here.engine.unprepare(claim))
                await self.tolerant(self.scene.api.delete(CLAIMS, name, namespace="team-a"))
            case "neighbour" if await self.is_there(claim):
                await self.neighbour(name)
            case "outage" if self.outage is None:
                self.outage = faults.fail(times=None, verb="patch", resource=CLAIMS)
            case "recovery":
                self.recover()
            case "conflict":
                faults.fail(
                    verb="patch",
                    resource=CLAIMS,
                    error=lambda: ApiConflictError("modified", status=409),
                )
            case "lost answer":
                faults.lose_answer(verb="patch", resource=CLAIMS)
            case "slow write" if self.slow is None:
                self.slow = faults.hang(verb="patch", resource=CLAIMS)
            case "minute":
                await here.engine.reconcile()
                here.hand_over()
                self.scene.clock.advance(60)
        here.hand_over()
        await asyncio.sleep(0)

    async def neighbour(self, name: str) -> None:
        """Another driver writes its own entry, keeping ours as it read them."""
        held = await self.raw(name)
        number = self.written_by_neighbour.get(name, 0) + 1
        mine = [one for one in held["status"].get("devices") or () if one["driver"] == DRIVER]
        held["status"]["devices"] = [*mine, {**OTHER, "data": {"count": number}}]
        await self.scene.api.replace(CLAIMS, held, subresource="status")
        self.written_by_neighbour[name] = number

    async def settle(self) -> None:
        """All faults end, a last process compares everything, and time goes by."""
        self.recover()
        self.scene.api.faults.clear()
        self.processes += 1
        async with desk(self.scene) as here:
            for claim in self.claims.values():
                await self.tolerant(here.engine.prepare(claim))
            for _ in range(3):
                await here.engine.reconcile()
                await here.later(700)
            for name, claim in self.claims.items():
                if await self.is_there(claim):
                    await self.check(here, name, claim)
        await self.check_events()

    async def check(self, here: Desk, name: str, claim: ClaimRef) -> None:
        raw = await self.raw(name)
        entry = here.engine.prepared_entry(claim.uid)
        if name == "c":
            assert entry is None
            (refusal,) = device_status.refusals(raw, DRIVER)
            assert (refusal.code, refusal.is_final) == ("UnknownDevice", True)
        else:
            wanted = Prepared(entry) if entry else Released()
            assert devices_after(raw, DRIVER, wanted, now="") is None
        others = [one for one in raw["status"].get("devices") or () if one["driver"] != DRIVER]
        number = self.written_by_neighbour.get(name)
        assert others == ([{**OTHER, "data": {"count": number}}] if number else [])

    async def check_events(self) -> None:
        """Each process tells the only refusal that there is once, at most."""
        found = (await self.scene.api.list(EVENTS, namespace="team-a")).items
        assert {one["reason"] for one in found} <= {"UnknownDevice"}
        assert len(found) <= self.processes
        assert not any("series" in one for one in found)

    async def raw(self, name: str) -> Object:
        return await self.scene.api.get(CLAIMS, name, namespace="team-a")

    async def is_there(self, claim: ClaimRef) -> bool:
        try:
            return bool((await self.raw(claim.name))["metadata"]["uid"] == claim.uid)
        except ApiNotFoundError:
            return False

    def recover(self) -> None:
        for fault in (self.outage, self.slow):
            if fault is not None:
                fault.lift()
        self.outage = self.slow = None

    @staticmethod
    async def tolerant(call: object) -> None:
        try:
            await call  # type: ignore[misc]
        except DragoonError:
            return


@settings(max_examples=60, deadline=None)
@example(A_NEIGHBOUR_WRITES_WHILE_OURS_HANGS)
@given(steps)
def test_c50_after_any_life_a_claims_status_says_what_is_true(todo: list[tuple[str, str]]) -> None:
    asyncio.run(Life().live(todo))
