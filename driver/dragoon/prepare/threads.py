"""The threads in which effects are carried out.

`asyncio.to_thread` goes through two futures and three locks; for effects of half a millisecond that
took as long again. Here a thread takes the work from a queue and answers the loop directly.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from dragoon.gpu.aside import unanswered

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    ended: Callable[[], object]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


def run_somewhere(
    work: Callable[[], _T], ended: Callable[[], object] = lambda: None
) -> asyncio.Future[_T]:
    """The same as `Threads.run` in a thread of asyncio's own."""
    context = contextvars.copy_context()
    running = asyncio.get_running_loop().run_in_executor(None, context.run, work)
    running.add_done_callback(lambda _: ended())
    return asyncio.shield(running)


class Threads:
    """At most so many threads, made when they are needed and kept; belongs to one event loop.

    They do not keep the process from ending: whoever ends waits for its effects before.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._made = 0
        self._busy = 0

    def __repr__(self) -> str:
        return f"<Threads {self._busy} of {self._made} at work>"

    def run(
        self, work: Callable[[], _T], ended: Callable[[], object] = lambda: None
    ) -> asyncio.Future[_T]:
        """What the work returns or raises, done in a thread with the caller's context variables.

        It has begun when this returns. Work that nobody waits for any more goes on: who cancels
        cancels only the waiting. ended: called in the loop when the work has ended in any case.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = loop.create_future()
        self._busy += 1
        if self._busy > self._made < self._most:
            self._made += 1
            name = f"effects-{self._made}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._jobs.put(_Job(work, ended, contextvars.copy_context(), loop, answer))
        return answer

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            result, error = None, None
            try:
                result = job.context.run(job.work)
            except BaseException as caught:  # noqa: BLE001 - handed over to the loop, whatever it is
                error = caught
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                job.loop.call_soon_threadsafe(self._finish, job, result, error)
            # Or what it holds would live until the next job.
            del job, result, error

    def _finish(self, job: _Job, result: object, error: BaseException | None) -> None:
        self._busy -= 1
        job.ended()
        if job.answer.done():  # cancelled: nobody waits
            return
        if error is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(error)


class Overseer:
    """Has work done that may hang, for a thread that must go on. Used by one thread at a time.

    At most one piece of work of a key is under way: while one hangs no other is begun, and nobody
    waits for it again.
    """

    def __init__(self, seconds: float) -> None:
        """seconds: how long a piece of work may take."""
        self._seconds = seconds
        self._under_way: dict[str, Future[Any]] = {}

    def oversee(self, key: str, work: Callable[[], _T]) -> _T:
        """What the work returns or raises.

        Raises a retryable HardwareError where it, or what was begun before of this key, has not
        ended in time; it goes on, for what it holds is in the middle of a change.
        """
        # What has ended late is asked for by nobody where its claim has gone.
        self._under_way = {one: known for one, known in self._under_way.items() if not known.done()}
        if key not in self._under_way:
            self._under_way[key] = begun = _begun(work)
            wait((begun,), self._seconds)
            if begun.done():
                del self._under_way[key]
                return begun.result()
        raise unanswered(self._seconds)


def _begun(work: Callable[[], _T]) -> Future[_T]:
    context, ending = contextvars.copy_context(), Future[_T]()

    def carry_out() -> None:
        try:
            result = context.run(work)
        except BaseException as caught:  # noqa: BLE001 - handed over to who waits, whatever it is
            ending.set_exception(caught)
        else:
            ending.set_result(result)

    threading.Thread(target=carry_out, name="overseen", daemon=True).start()
    return ending
