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
from dragoon.prepare.observing import Complaints, Observer
from dragoon.prepare.pods import claim_names
from dragoon.prepare.settings import PrepareSettings

_FIRST_PAUSE_S: Final = 1.0
_NOBODYS: Final = (
    "its journal entry is damaged, and no pod of this node has the claim: its GPUs stay reserved "
    "until the kubelet takes it back"
)


class Rebuilder:
    """Tries until no entry is missing: at once, and then with pauses that grow to a sweep's.

    rebuild plans a claim and writes its entry, if that is still missing. It raises DragoonError.
    """

    def __init__(
        self,
        api: Api,
        settings: PrepareSettings,
        clock: Clock,
        *,
        observer: Observer,
        rebuild: Callable[[ClaimRef], Awaitable[None]],
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._rebuild = rebuild
        self._complaints = Complaints(observer)
        self._missing: frozenset[str] = frozenset()
        self._pause = _FIRST_PAUSE_S
        self._due = 0.0

    async def consider(self, missing: frozenset[str]) -> None:
        """missing: the UIDs of answered claims that have no entry now. Cheap when there are none."""
        if missing != self._missing:
            self._missing, self._pause, self._due = missing, _FIRST_PAUSE_S, 0.0
        if not missing or self._clock.now() < self._due:
            return
        self._complaints.are(await self._try(missing))
        self._due = self._clock.now() + self._pause
        self._pause = min(self._pause * 2, self._settings.sweep_s)

    async def _try(self, missing: Collection[str]) -> Mapping[str, str]:
        """What kept entries from being written, by the claim's UID."""
        problems = dict.fromkeys(missing, _NOBODYS)
        try:
            async with asyncio.timeout(self._settings.api_patience_s):
                found = await self._find(missing)
        except (DragoonError, TimeoutError) as error:
            return {"": f"damaged journal entries cannot be written anew: {error or 'no answer'}"}
        for claim in found:
            problems.pop(claim.uid)
            try:
                await self._rebuild(claim)
            except DragoonError as error:
                problems[claim.uid] = f"its journal entry cannot be written anew: {error}"
        return problems

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
            names = claim_names(pod)
        except ClaimNotAllocatedError:
            continue
        for name in names.values():
            yield pod["metadata"].get("namespace", ""), name
