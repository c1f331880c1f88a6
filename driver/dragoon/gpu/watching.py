"""The inventory of this node as the event loop sees it: the last good one, renewed on demand."""

import asyncio
import contextlib
from collections.abc import Callable

from dragoon.errors import DragoonError, HardwareError
from dragoon.gpu.aside import aside
from dragoon.gpu.model import Inventory
from dragoon.gpu.port import Gpus


class InventoryWatch:
    """Holds the newest inventory; belongs to one event loop.

    Looks run one at a time on a thread of their own. A look that fails, or takes longer than
    `patience` seconds, is reported as `error` and keeps the inventory before it. Subscribers are
    called on the loop when the inventory differs from the one before, `report` when the error
    does (None: looks work again); neither may block or raise.
    """

    def __init__(
        self,
        gpus: Gpus,
        interval: float = 60.0,
        *,
        patience: float = 30.0,
        pause: float = 1.0,
        report: Callable[[DragoonError | None], None] | None = None,
    ) -> None:
        self._gpus = gpus
        self._interval = interval
        self._pause = min(pause, interval)
        self._patience = patience
        self._report = report
        self._current: Inventory | None = None
        self._error: DragoonError | None = None
        self._subscribers: list[Callable[[Inventory], None]] = []
        self._running: asyncio.Task[Inventory | DragoonError] | None = None
        self._queued: asyncio.Task[Inventory | DragoonError] | None = None
        self._wanted = asyncio.Event()

    @property
    def current(self) -> Inventory | None:
        """The newest inventory; None before the first good look."""
        return self._current

    @property
    def error(self) -> DragoonError | None:
        """Why the newest look failed or does not end; None when it worked."""
        return self._error

    def subscribe(self, callback: Callable[[Inventory], None]) -> Callable[[], None]:
        """Calls back with every inventory that differs from the last; returns how to stop that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def want_look(self) -> None:
        """Makes `run` look soon, for those who need not wait for it."""
        self._wanted.set()

    async def look(self) -> Inventory:
        """The inventory of a look that began after this call.

        Callers that wait for the same look share it. Raises what `Gpus.inventory` raises.
        """
        if self._queued is None:
            self._queued = asyncio.create_task(self._take_turn(self._running))
        outcome = await asyncio.shield(self._queued)
        if isinstance(outcome, DragoonError):
            raise outcome
        return outcome

    async def run(self) -> None:
        """Looks at once, then every `interval` seconds and whenever `want_look` was called.

        From one look to the next it is `pause` seconds at least: a card may raise errors in a loop.
        """
        now = asyncio.get_running_loop().time
        while True:
            self._wanted.clear()
            began = now()
            with contextlib.suppress(DragoonError):  # kept in `error`
                await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._wanted.wait()
            await asyncio.sleep(began + self._pause - now())

    async def _take_turn(
        self, before: asyncio.Task[Inventory | DragoonError] | None
    ) -> Inventory | DragoonError:
        if before is not None:
            await asyncio.wait({before})
        self._running, self._queued = self._queued, None
        looking = aside(self._gpus.inventory)
        done, _ = await asyncio.wait({looking}, timeout=self._patience)
        if not done:
            self._set_error(
                HardwareError(
                    f"the GPU driver has not answered for {self._patience:g} s",
                    hint="look at the kernel log of the node; a reboot may be needed",
                    retryable=True,
                )
            )
        try:
            found = await looking
        except DragoonError as error:
            self._set_error(error)
            return error
        self._set_error(None)
        self._set_current(found)
        return found

    def _set_current(self, found: Inventory) -> None:
        before, self._current = self._current, found
        if found != before:
            for callback in tuple(self._subscribers):
                callback(found)

    def _set_error(self, error: DragoonError | None) -> None:
        before, self._error = self._error, error
        if self._report is not None and str(before) != str(error):
            self._report(error)
