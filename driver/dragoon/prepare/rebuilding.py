"""Finding the claims whose journal entry was damaged, so that they are planned and written again.

A container that runs with such a claim is in no danger, but nobody would take back what was set on
its cards, and others would be kept from all of them. The kubelet does not ask again for a running
pod. A UID does not name a claim, so it is looked for among the claims of this node's pods.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, Final

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.errors import ApiNotFoundError, ClaimNotAllocatedError, DragoonError
from dragoon.kube.port import CLAIMS, PODS, Api
from dragoon.prepare.clock import Clock
from dragoon.prepare.observing import Complaints, Observer, Repaired
from dragoon.prepare.pods import every_claim
from dragoon.prepare.settings import PrepareSettings

_FIRST_PAUSE_S: Final = 1.0
_NOBODYS: Final = (
    "its journal entry is damaged, and no pod of this node has the claim: its GPUs stay reserved "
    "until the kubelet takes it back"
)


class Rebuilder:
    """Tries until no entry is missing: at once, and then with pauses that grow to a sweep's.

    rebuild plans a claim and writes its entry, and forget clears away what is left of a claim that
    no pod has; both say whether they did, look again first, and raise DragoonErrors.
    """

    def __init__(
        self,
        api: Api,
        settings: PrepareSettings,
        clock: Clock,
        *,
        observer: Observer,
        rebuild: Callable[[ClaimRef], Awaitable[bool]],
        forget: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._observer = observer
        self._rebuild = rebuild
        self._forget = forget
        self._complaints = Complaints(observer)
        self._missing: frozenset[str] = frozenset()
        self._pause = _FIRST_PAUSE_S
        self._due = 0.0

    async def consider(self, unreadable: frozenset[str]) -> None:
        """unreadable: claims of which there is no entry that can be read. Cheap for none."""
        if unreadable != self._missing:
            self._missing, self._pause, self._due = unreadable, _FIRST_PAUSE_S, 0.0
        if not unreadable or self._clock.now() < self._due:
            return
        self._complaints.are(await self._try(unreadable))
        self._due = self._clock.now() + self._pause
        self._pause = min(self._pause * 2, self._settings.sweep_s)

    async def _try(self, unreadable: Collection[str]) -> Mapping[str, str]:
        """What kept entries from being written, by the claim's UID."""
        try:
            async with asyncio.timeout(self._settings.api_patience_s):
                found = {claim.uid: claim for claim in await self._find(unreadable)}
        except (DragoonError, TimeoutError) as error:
            return {"": f"damaged journal entries cannot be written anew: {error or 'no answer'}"}
        problems = {}
        for uid in unreadable:
            try:
                problem = await self._settle(uid, found.get(uid))
            except DragoonError as error:
                problem = f"its journal entry is damaged, and cannot be written anew: {error}"
            if problem:
                problems[uid] = problem
        return problems

    async def _settle(self, uid: str, claim: ClaimRef | None) -> str:
        """What is wrong with one claim, empty for nothing. claim: None if no pod has it."""
        if claim is not None:
            done = await self._rebuild(claim)
        elif done := await self._forget(uid):
            self._observer(Repaired(uid, "a damaged journal entry that no pod needs: removed"))
        if done:
            self._missing -= {uid}  # the next damage is another one
        return "" if done or claim else _NOBODYS

    async def _find(self, missing: Collection[str]) -> tuple[ClaimRef, ...]:
        pods = await self._api.list(PODS, fields={"spec.nodeName": self._settings.node})
        found = []
        for namespace, name in dict.fromkeys(_claims_of(pods.items)):
            try:
                claim = claim_ref(await self._api.get(CLAIMS, name, namespace=namespace))
            except ApiNotFoundError:
                continue
            if claim.uid in missing:
                found.append(claim)
        return tuple(found)


def _claims_of(pods: Collection[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for pod in pods:
        try:
            names = every_claim(pod)
        except ClaimNotAllocatedError:
            continue
        for name in sorted(names):
            yield pod["metadata"].get("namespace", ""), name
