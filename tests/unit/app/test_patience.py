"""A driver that hangs is given up after a while, and what needs none of it is still told."""

import threading
from collections.abc import Iterator

import pytest

from dragoon.app.patience import in_time, with_or_without
from dragoon.errors import DriverMissingError, HardwareError

SHORT = 0.05


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """What the driver waits for; set at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


async def test_an_answer_is_passed_on_and_so_is_an_error() -> None:
    def missing() -> None:
        raise DriverMissingError("none")

    assert await in_time(lambda: 7) == 7
    with pytest.raises(DriverMissingError, match="none"):
        await in_time(missing)


async def test_a_driver_that_hangs_is_given_up(hanging: threading.Event) -> None:
    with pytest.raises(HardwareError, match=r"no answer within 0\.05 s: the driver hangs"):
        await in_time(hanging.wait, SHORT)


async def test_what_needs_no_driver_is_told_with_the_reason(hanging: threading.Event) -> None:
    def look(silent: str) -> str:
        return silent or str(hanging.wait())

    assert await with_or_without(look, SHORT) == "no answer within 0.05 s: the driver hangs"
    hanging.set()
    assert await with_or_without(look) == "True"
