"""The commands of the pages: those that need no cluster are run, of the others the grammar is checked."""

from pathlib import Path
from typing import Final

import pytest

from tests.docs.blocks import ROOT, Block, blocks, commands, is_shown
from tests.docs.grammar import invocations, problem
from tests.docs.running import printed

_RUN: Final = [one for one in blocks() if one.kind == ("console",)]
_WRITTEN: Final = [one for one in blocks() if one.language in {"sh", "console"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader stands: in the checkout, without what tests leave there."""
    for name in ("docs", "deviceclasses", "charts", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize("block", _RUN, ids=lambda one: one.where)
def test_commands_print_what_the_page_shows(block: Block, folder: Path) -> None:
    for command in commands(block):
        found = printed(command.text, folder)
        assert is_shown(command.output, found), f"$ {command.text}\n{found}"


@pytest.mark.parametrize("block", _WRITTEN, ids=lambda one: one.where)
def test_commands_are_written_as_their_programs_take_them(block: Block) -> None:
    found = list(invocations(block))
    assert found
    wrong = [f"{' '.join(words)}: {said}" for words in found if (said := problem(words))]
    assert wrong == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a ... z\n", "a b c z\n", True),
        ("a ... z\n", "a b\nc z\n", False),
        ("", "", True),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(
    shown: str, printed: str, *, same: bool
) -> None:
    assert is_shown(shown, printed) is same


@pytest.mark.parametrize(
    "words",
    [
        "dragoon explane pod/a",
        "dragoon explain pod/a --nothing",
        "dragoon gangs relase --all",
        "kubectl aply -f docs/manifests",
        "kubectl apply -f docs/nothing.yaml",
        "helm install dragoon charts/dragoon --set simulated=dgx-h100",
        "helm install dragoon charts/other",
        "curl http://example.com",
    ],
)
def test_a_command_that_does_not_exist_is_found(words: str) -> None:
    assert problem(words.split())
