import json
import re
from collections.abc import Iterator

import click
import pytest
import yaml

from dragoon.cli.output import Cell, Row, print_data, print_table

HEADER = ("NAME", "MEMORY")
ROWS: list[Row] = [("gpu-0000-65-00-0", "80 GiB"), ("gpu-1", Cell("lost", "bad")), ("gpu-2", "")]
PLAIN = (
    "NAME              MEMORY\n"
    "gpu-0000-65-00-0  80 GiB\n"
    "gpu-1             lost\n"
    "gpu-2             -\n"
)


@pytest.fixture
def context() -> Iterator[click.Context]:
    with click.Context(click.Command("x")) as found:
        yield found


def test_a_plain_table_has_aligned_columns_and_no_decoration(
    context: click.Context, capsys: pytest.CaptureFixture[str]
) -> None:
    context.color = False
    print_table(HEADER, ROWS)
    assert capsys.readouterr().out == PLAIN


def test_a_wide_table_is_never_wrapped(
    context: click.Context, capsys: pytest.CaptureFixture[str]
) -> None:
    for colour in (False, True):
        context.color = colour
        print_table(HEADER, [("x" * 300, "y" * 300)])
        assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_coloured_table_says_the_same_in_colour(
    context: click.Context, capsys: pytest.CaptureFixture[str]
) -> None:
    context.color = True
    print_table(HEADER, ROWS)
    told = capsys.readouterr().out
    assert "\x1b[31mlost" in told
    bare = re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert [line.rstrip() for line in bare.splitlines()] == PLAIN.splitlines()


def test_what_is_not_there_has_no_colour(
    context: click.Context, capsys: pytest.CaptureFixture[str]
) -> None:
    context.color = True
    print_table(("NAME", "TAINTS"), [("a", Cell("", "bad")), ("b", Cell("lost", "bad"))])
    without, tainted = capsys.readouterr().out.splitlines()[1:]
    assert "\x1b[31m" not in without
    assert "\x1b[31mlost" in tainted


def test_text_from_outside_cannot_style_the_table(
    context: click.Context, capsys: pytest.CaptureFixture[str]
) -> None:
    context.color = True
    print_table(("A",), [("[red]x[/red]",)])
    assert "[red]x[/red]" in capsys.readouterr().out


def test_data_is_printed_as_json_or_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"kind": "List", "items": [{"a": 1}]}
    print_data(data, "json")
    assert json.loads(capsys.readouterr().out) == data
    print_data(data, "yaml")
    text = capsys.readouterr().out
    assert yaml.safe_load(text) == data
    assert text.startswith("kind: List\n")
