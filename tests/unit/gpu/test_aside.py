"""Calls that may hang: nobody waits for one twice, and at most one is under way."""

import asyncio
import threading

import pytest

from dragoon.errors import DeviceLostError, HardwareError
from dragoon.gpu.aside import Patient


class Call:
    """Blocks until it is let go; counts how often it was made."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.made = 0

    def __call__(self) -> int:
        self.made += 1
        assert self.go.wait(60)
        return self.made


async def test_what_the_call_answers_or_raises_is_passed_on() -> None:
    patient = Patient(60)
    assert await patient.ask(lambda: 7) == 7

    def gone() -> int:
        raise DeviceLostError("gone")

    with pytest.raises(DeviceLostError):
        await patient.ask(gone)
    assert await patient.ask(lambda: 8) == 8


async def test_a_call_that_hangs_is_not_made_again_before_it_has_ended() -> None:
    patient, call = Patient(0.01), Call()
    for _ in range(5):
        with pytest.raises(HardwareError, match=r"has not answered for 0.01 s") as caught:
            await patient.ask(call)
        assert caught.value.retryable
    while not call.made:  # noqa: ASYNC110 - its thread may begin later than that
        await asyncio.sleep(0.001)
    assert call.made == 1
    call.go.set()
    answers: list[int] = []
    while not answers:  # On a busy machine the next ones may not answer in time either.
        made = call.made
        try:
            answers.append(await patient.ask(call))
        except HardwareError:
            await asyncio.sleep(0.001)
    assert answers == [made + 1], "the late answer was about another moment"
