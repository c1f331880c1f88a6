import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from dragoon.telemetry import logs


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_pod_logs_one_json_object_a_line_with_its_context() -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    with logs.about(claim="default/a", claim_uid="u1"):
        structlog.get_logger("dragoon.prepare").info("prepared", seconds=0.5)
    structlog.get_logger("dragoon.prepare").info("idle")

    first, second = lines(out)
    assert first["event"] == "prepared"
    assert first["level"] == "info"
    assert first["logger"] == "dragoon.prepare"
    assert (first["claim"], first["claim_uid"], first["seconds"]) == ("default/a", "u1", 0.5)
    assert "timestamp" in first
    assert "claim" not in second


def test_a_terminal_gets_key_value_text() -> None:
    out = Terminal()
    logs.configure(stream=out)
    structlog.get_logger("x").warning("slow card", gpu="0000:65:00.0")
    assert 'level=warning event="slow card" gpu=0000:65:00.0' in out.getvalue()


def test_the_format_can_be_forced() -> None:
    out = Terminal()
    logs.configure(stream=out, form="json")
    structlog.get_logger("x").info("hello")
    assert lines(out)[0]["event"] == "hello"


def test_lines_below_the_level_are_dropped() -> None:
    out = io.StringIO()
    logs.configure(stream=out, level="warning")
    structlog.get_logger("x").info("chatter")
    logging.getLogger("lib").info("chatter")
    structlog.get_logger("x").warning("news")
    assert [line["event"] for line in lines(out)] == ["news"]


def test_libraries_that_use_logging_come_out_the_same_way() -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    logging.getLogger("lib").error("broke: %s", "reason")
    (line,) = lines(out)
    assert line["event"] == "broke: reason"
    assert line["level"] == "error"
    assert line["logger"] == "lib"


def test_a_second_call_does_not_double_the_lines() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.configure(stream=first)
    logs.configure(stream=second)
    structlog.get_logger("x").info("once")
    assert not first.getvalue()
    assert len(lines(second)) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("not \udcff text", "not \udcff text"),
        (ValueError("why"), "ValueError('why')"),
        ({1: "a"}, {"1": "a"}),
        ([Path("/x")], [repr(Path("/x"))]),
        (float("inf"), None),
    ],
)
def test_whatever_is_logged_makes_a_line(value: object, shown: object) -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    structlog.get_logger("x").info("odd", value=value)
    assert lines(out)[0]["value"] == shown


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"token": "abc123"}, "abc123"),
        ({"Authorization": "Basic abc123"}, "abc123"),
        ({"header": "Bearer abc123.def"}, "abc123"),
        ({"reason": "got eyJhbGciOi.eyJzdWIi.c2ln back"}, "c2ln"),
        ({"url": "https://h/x?token=abc123&watch=1"}, "abc123"),
    ],
)
def test_no_secret_reaches_a_line(fields: dict[str, str], secret: str) -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    structlog.get_logger("x").info("asked", **fields)
    assert secret not in out.getvalue()
    assert logs.HIDDEN in out.getvalue()


def test_a_secret_in_a_traceback_is_hidden_too() -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    try:
        raise ValueError("refused: Bearer abc123")  # noqa: TRY301
    except ValueError:
        structlog.get_logger("x").exception("failed")
    assert "abc123" not in out.getvalue()
    assert "ValueError" in out.getvalue()


async def test_tasks_do_not_see_each_others_context() -> None:
    out = io.StringIO()
    logs.configure(stream=out)
    both_inside = asyncio.Barrier(2)

    async def work(uid: str) -> None:
        with logs.about(claim_uid=uid):
            await both_inside.wait()
            structlog.get_logger("x").info(uid)

    await asyncio.gather(work("a"), work("b"))
    assert sorted((line["event"], line["claim_uid"]) for line in lines(out)) == [
        ("a", "a"),
        ("b", "b"),
    ]
