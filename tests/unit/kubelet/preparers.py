"""A preparer whose answers, waits and failures a test decides."""

import asyncio
from collections import defaultdict

from dragoon.api.claims import ClaimRef
from dragoon.prepare.port import PreparedDevice


def claim(uid: str, name: str = "") -> ClaimRef:
    return ClaimRef("default", name or f"claim-{uid}", uid)


def device(name: str, *, share_id: str | None = None) -> PreparedDevice:
    return PreparedDevice(
        requests=("g",),
        pool="node-a/gpu",
        device=name,
        cdi_ids=(f"gpu.dragoon.dev/claim={name}",),
        share_id=share_id,
    )


class ScriptedPreparer:
    """Implements prepare.port.Preparer: one device per claim unless told otherwise.

    answers: what prepare gives for a UID, or raises. gates: events a UID waits for, in both
    calls. calls: what was begun, as ("prepare", UID). cut_off: UIDs whose call was cancelled.
    """

    def __init__(self) -> None:
        self.answers: dict[str, tuple[PreparedDevice, ...] | BaseException] = {}
        self.failing_unprepare: dict[str, BaseException] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.calls: list[tuple[str, str]] = []
        self.cut_off: list[str] = []

    async def prepare(self, claim: ClaimRef) -> tuple[PreparedDevice, ...]:
        await self._begin("prepare", claim.uid)
        answer = self.answers.get(claim.uid, (device(f"gpu-{claim.uid}"),))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def unprepare(self, claim: ClaimRef) -> None:
        await self._begin("unprepare", claim.uid)
        if claim.uid in self.failing_unprepare:
            raise self.failing_unprepare[claim.uid]

    async def _begin(self, call: str, uid: str) -> None:
        self.calls.append((call, uid))
        self.begun[uid].set()
        if uid in self.gates:
            try:
                await self.gates[uid].wait()
            except asyncio.CancelledError:
                self.cut_off.append(uid)
                raise
