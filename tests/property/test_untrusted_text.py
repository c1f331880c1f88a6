"""Text that a user can write anywhere: it stays text in logs, on a terminal, in the map, in the API.

Kubernetes checks names and labels; messages, expressions, annotations and saved clusters can hold
anything.
"""

import io
import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.api import opaque_config
from dragoon.api.visible import OBEYED
from dragoon.cli import main
from dragoon.cli.output import plain_table
from dragoon.cli.output import print_table as table
from dragoon.cli.terminal import guarded
from dragoon.diagnose import saving
from dragoon.diagnose.mapping import draw, page
from dragoon.errors import InvalidInputError
from dragoon.telemetry import logs
from tests.unit.diagnose.fleet import hostile

_BAD = (
    "\x1b[2J",
    "\x1b]0;x\x07",
    "\x9b31m",
    "\r\n",
    "\u2028",
    "\u202e",
    "\u200b",
    "\ud800",
    "\x00",
)
_MARKUP = ("</script>", "<script>alert(1)</script>", "<!--", "]]>", "&lt;", "'\"><img src=x>")
_TEXT = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from(_BAD), st.sampled_from(_MARKUP)), max_size=6
).map("".join)


@given(_TEXT)
def test_a_log_line_is_one_line_without_control_characters(text: str) -> None:
    for form in ("json", "text"):
        stream = io.StringIO()
        with _logging_to(stream, form):
            structlog.get_logger("t").warning(text, claim=text)
            logging.getLogger("lib").warning("%s", text)
        lines = stream.getvalue().split("\n")
        assert len(lines) == 3
        assert lines[2] == ""
        assert not any(OBEYED.search(line) for line in lines[:2])


@contextmanager
def _logging_to(stream: io.StringIO, form: Any) -> Iterator[None]:
    """Logs to a stream; afterwards as before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logs.configure(form=form, stream=stream)
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:], root.level = handlers, level


@given(_TEXT)
def test_a_terminal_is_told_nothing_but_text_lines_and_our_colours(text: str) -> None:
    stream = io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream), guarded():
        click.echo(f"{click.style('waits', fg='red')} {text}", color=True)
    printed = stream.getvalue()
    for ours in ("\x1b[31m", "\x1b[0m", "\n", "\t"):
        printed = printed.replace(ours, "")
    assert not OBEYED.search(printed)


@given(_TEXT, _TEXT)
def test_a_cell_never_makes_a_row(first: str, second: str) -> None:
    stream = io.StringIO()
    with redirect_stdout(stream), click.Context(main.root):
        table(("A", "B"), [(first, second)])
    assert stream.getvalue().count("\n") == 2
    assert not OBEYED.search(stream.getvalue().replace("\n", ""))
    assert plain_table(("A",), []) == "A\n"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[str] = []
        self.data: list[str] = []
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        self._is_data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data.append(data)


@given(_TEXT.filter(bool))
@settings(max_examples=25, deadline=None)
def test_the_map_has_the_same_elements_whatever_names_say(text: str) -> None:
    found, plain = _Elements(), _Elements()
    found.feed(page(draw(hostile(text))))
    plain.feed(page(draw(hostile("plain"))))
    assert found.seen == plain.seen
    json.loads(found.data[0])


@given(_TEXT.filter(bool))
@settings(max_examples=10, deadline=None)
def test_commands_that_look_at_a_saved_cluster_print_no_control_characters(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "saved")
        saving.save(hostile(text), saved)
        for words in (("map", "-o", "json"), ("map", "-o", "yaml"), ("map",)):
            stream = io.StringIO()
            with redirect_stdout(stream), redirect_stderr(stream):
                main.run([*words, "--snapshot", str(saved)])
            assert not OBEYED.search(stream.getvalue().replace("\n", ""))


_FIELDS = st.sampled_from(("apiVersion", "kind", "tier", "priority", "timeSlice"))
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), _TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(_TEXT, _FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(_JSON)
def test_a_config_is_understood_or_refused_and_nothing_else(parameters: Any) -> None:
    try:
        found = opaque_config.decode(parameters, "config")
    except InvalidInputError:
        return
    assert parameters["apiVersion"] == found.api_version
    assert set(parameters) <= {"apiVersion", "kind", "tier", "priority", "timeSlice"}
