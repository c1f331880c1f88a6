"""Leader election on a Lease: of several processes one works, and another when it is gone.

The rules of client-go's leaderelection, on the raw port: a lease counts as held for its duration
after it was last *seen to change*, by the clock of whoever looks, so clocks need not agree. Every
write names the resourceVersion it was decided on. A leader counts from before it asked, which is
earlier than anybody sees the write, and stops its work before others may start theirs.
`kubernetes.aio` has an election too; it needs the typed models.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.kube.port import LEASES, Api, Object

log = logging.getLogger(__name__)


class LeadershipLostError(DragoonError):
    """The lease could not be renewed in time; another process may lead now."""

    code = "LeadershipLost"
    default_retryable = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of an election, in seconds.

    lease: how long a silent leader is waited for. renew: how long the leader tries to renew before
    it gives up, less than lease. retry: between two tries.
    """

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


DEFAULT: Final = Timing()


class Election:
    """One candidate. identity: unique among the candidates.

    leader: who holds the lease as last seen, empty for nobody.
    """

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing = DEFAULT,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timing = timing
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._seen: tuple[str, float] | None = None
        self.leader = ""
        self.is_leading = False

    async def lead(self, work: Callable[[], Awaitable[object]]) -> None:
        """Waits for the lease, then does the work while it is held; gives it back at the end.

        Raises what the work raises, and LeadershipLostError once the work is cancelled because the
        lease could not be renewed.
        """
        renewed = await self._stand()
        log.info("leading: %s holds the lease %s", self._identity, self._name)
        self.is_leading = True
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew(renewed))
        try:
            await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.is_leading = False
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()
        for task in (working, renewing):
            if not task.cancelled():
                task.result()

    async def _stand(self) -> float:
        """Waits for the lease; says when it was asked for: the others count from then at least.

        An answer that came so late that no time is left to renew the lease does not count: between
        the write and now another one may have taken it.
        """
        while True:
            started = self._clock()
            if await self._try() and self._left(started) > self._timing.retry:
                return started
            await self._sleep(self._timing.retry)

    def _left(self, renewed: float) -> float:
        """Seconds until a leader has to stop, unless it renews the lease before."""
        return renewed + self._timing.renew - self._clock()

    async def _renew(self, renewed: float) -> None:
        """Renews until that fails for too long. Raises LeadershipLostError.

        renewed: when the lease was last asked for with success.
        """
        while True:
            await self._sleep(max(0.0, min(self._timing.retry, self._left(renewed))))
            left = self._left(renewed)
            try:
                # A call that hangs must not outlive the lease.
                async with asyncio.timeout(max(0.0, left)):
                    started = self._clock()
                    if await self._try():
                        renewed = started
                        continue
            except TimeoutError:
                left = 0.0
            if left <= 0 or self.leader != self._identity:
                raise LeadershipLostError(
                    f"the lease {self._namespace}/{self._name} could not be renewed, "
                    f"it is held by {self.leader or 'nobody'}"
                )

    async def _try(self) -> bool:
        """Takes or renews the lease if that is allowed. Errors of the API count as no."""
        try:
            return await self._take()
        except DragoonError as error:
            log.log(
                logging.INFO if error.retryable else logging.WARNING,
                "the lease %s cannot be had now: %s",
                self._name,
                error,
            )
            return False

    async def _take(self) -> bool:
        try:
            lease = await self._api.get(LEASES, self._name, namespace=self._namespace)
        except ApiNotFoundError:
            meta = {"name": self._name, "namespace": self._namespace}
            body = {"metadata": meta, "spec": self._spec(None)}
            try:
                return self._see(await self._api.create(LEASES, _typed(body)))
            except ApiConflictError:  # another candidate made it in between
                return False
        if not self._see(lease) and not self._has_ended(lease):
            return False
        body = {"metadata": lease["metadata"], "spec": self._spec(lease)}
        return self._see(await self._api.replace(LEASES, _typed(body)))

    def _see(self, lease: Object) -> bool:
        """Notes what the lease says; whether it is ours."""
        version = lease["metadata"]["resourceVersion"]
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, self._clock())
        self.leader = (lease.get("spec") or {}).get("holderIdentity") or ""
        return self.leader == self._identity

    def _has_ended(self, lease: Object) -> bool:
        """Whether nobody holds it, or its holder was silent for as long as it asked for."""
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return True
        seconds = spec.get("leaseDurationSeconds") or self._timing.lease
        return self._seen is not None and self._clock() - self._seen[1] > seconds

    def _spec(self, lease: Object | None) -> Object:
        old = (lease or {}).get("spec") or {}
        now = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        again = old.get("holderIdentity") == self._identity
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._timing.lease)),
            "acquireTime": old["acquireTime"] if again and old.get("acquireTime") else now,
            "renewTime": now,
            "leaseTransitions": transitions if again or lease is None else transitions + 1,
        }

    async def _release(self) -> None:
        """Lets go of the lease, so that the next one need not wait for it to run out."""
        if self.leader != self._identity:
            return
        with contextlib.suppress(DragoonError, TimeoutError):
            async with asyncio.timeout(self._timing.retry):
                lease = await self._api.get(LEASES, self._name, namespace=self._namespace)
                if not self._see(lease):
                    return
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._api.replace(
                    LEASES, _typed({"metadata": lease["metadata"], "spec": spec})
                )
                self.leader = ""


def _typed(body: Object) -> Object:
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **body}
