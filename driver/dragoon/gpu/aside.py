"""Calls of the GPU ports from an event loop: they block, and on a sick card they may hang."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from dragoon.errors import HardwareError
from dragoon.gpu.model import PciAddress

_T = TypeVar("_T")


def aside(call: Callable[[], _T]) -> asyncio.Future[_T]:
    """Like asyncio.to_thread, but a call that hangs does not keep the process from ending.

    Each call has a thread of its own: one that hangs takes no turn away from others either.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()
    # A caller that was cancelled does not ask for the answer any more: that is no defect.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def settle(result: _T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except Exception as caught:  # noqa: BLE001 - handed over to the loop, whatever it is
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="gpu-call", daemon=True).start()
    return future


class Patient:
    """Asks what may hang, for a caller that must go on. Belongs to one event loop.

    At most one call is under way: while one hangs no other is begun, and nobody waits for it again.
    """

    def __init__(self, seconds: float) -> None:
        """seconds: how long an answer may take."""
        self._seconds = seconds
        self._running: asyncio.Future[Any] | None = None

    async def ask(self, call: Callable[[], _T]) -> _T:
        """What the call answers, which blocks.

        Raises what the call raises, and a retryable HardwareError where it, or one before it, has
        not answered in time. A late answer is forgotten: it is about a moment that has passed.
        """
        if self._running is None or self._running.done():
            self._running = asking = aside(call)
            done, _ = await asyncio.wait({asking}, timeout=self._seconds)
            if done:
                return asking.result()
        raise unanswered(self._seconds)


class Patients:
    """A `Patient` for each card: one that hangs costs no other."""

    def __init__(self, seconds: float) -> None:
        """seconds: how long an answer of one card may take."""
        self._seconds = seconds
        self._of: dict[PciAddress, Patient] = {}

    async def ask(self, card: PciAddress, call: Callable[[], _T]) -> _T:
        """See `Patient.ask`; call asks that card."""
        return await self._of.setdefault(card, Patient(self._seconds)).ask(call)


def unanswered(seconds: float) -> HardwareError:
    """The error for a driver that has not answered for so long."""
    return HardwareError(
        f"the GPU driver has not answered for {seconds:g} s",
        hint="look for hung GPUs in the kernel log; a reboot may be needed",
        retryable=True,
    )
