"""Calls are told of after their answers; everything else at once."""

import asyncio
import contextvars

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.app.afterwards import Afterwards
from dragoon.prepare.observing import Counted, Event, Finished

_ABOUT: contextvars.ContextVar[str] = contextvars.ContextVar("about", default="")


def finished(name: str) -> Finished:
    return Finished("prepare", ClaimRef("default", name, name), 0.1)


class Listener:
    """Notes what it is told, and in which context."""

    def __init__(self) -> None:
        self.told: list[tuple[Event, str]] = []
        self.any = asyncio.Event()

    def observe(self, event: Event) -> None:
        self.told.append((event, _ABOUT.get()))
        self.any.set()


async def test_a_call_is_told_of_in_a_moment_in_its_own_context() -> None:
    listener = Listener()
    afterwards = Afterwards(listener.observe)
    for name in ("a", "b"):
        _ABOUT.set(name)
        afterwards.observe(finished(name))
    assert listener.told == []
    _ABOUT.set("")
    async with asyncio.timeout(60):
        await listener.any.wait()
    assert listener.told == [(finished("a"), "a"), (finished("b"), "b")]


async def test_what_is_no_call_is_told_at_once() -> None:
    listener = Listener()
    afterwards = Afterwards(listener.observe)
    afterwards.observe(finished("a"))
    afterwards.observe(Counted(3))
    assert listener.told == [(Counted(3), "")]


def test_what_is_no_call_may_come_from_a_thread_without_a_loop() -> None:
    listener = Listener()
    Afterwards(listener.observe).observe(Counted(3))
    assert listener.told == [(Counted(3), "")]


async def test_the_last_calls_are_told_of_before_the_process_ends_and_only_once() -> None:
    listener = Listener()
    afterwards = Afterwards(listener.observe)
    afterwards.observe(finished("a"))
    afterwards.tell()
    afterwards.tell()
    assert [event for event, _ in listener.told] == [finished("a")]


async def test_after_a_telling_the_next_call_is_told_of_too() -> None:
    listener = Listener()
    afterwards = Afterwards(listener.observe)
    afterwards.observe(finished("a"))
    afterwards.tell()
    listener.any.clear()
    afterwards.observe(finished("b"))
    async with asyncio.timeout(60):
        await listener.any.wait()
    assert [event for event, _ in listener.told] == [finished("a"), finished("b")]


async def test_a_listener_that_fails_costs_the_next_call_nothing() -> None:
    told: list[Event] = []

    def observe(event: Event) -> None:
        told.append(event)
        if len(told) == 1:
            raise ValueError("a defect")

    afterwards = Afterwards(observe)
    afterwards.observe(finished("a"))
    with pytest.raises(ValueError, match="a defect"):
        afterwards.tell()
    afterwards.observe(finished("b"))
    afterwards.tell()
    assert told == [finished("a"), finished("b")]
