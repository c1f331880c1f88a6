"""What hack/oracle prints, on a comparison that needs no Go."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.oracle import edges
from tests.oracle.__main__ import run
from tests.oracle.comparing import Raw, UndecidedError
from tests.oracle.shrinking import shrunk
from tests.oracle.slice_edges import random_slice
from tests.property import allocator_scenes
from tests.property.allocator_devices import Dice


class Wrong:
    """Differs where a list has a 3, and says nothing about lists with a 4."""

    name = "wrong"

    def __init__(self) -> None:
        self.asked: list[Raw] = []

    def draw(self, dice: Dice) -> Raw:
        question = {"values": [dice.random.randrange(6) for _ in range(4)], "more": {"x": [1, 2]}}
        self.asked.append(question)
        return question

    def difference(self, question: Raw) -> str:
        if 4 in question["values"]:
            raise UndecidedError("a question with a 4")
        return "ours: 3, theirs: 4" if 3 in question["values"] else ""


class Right(Wrong):
    """Never differs."""

    def difference(self, question: Raw) -> str:
        return ""


def test_a_mismatch_is_printed_as_small_as_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([Wrong()], 1, 0.05) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 1"
    first = next(number for number, line in enumerate(lines) if line.startswith("mismatch in"))
    assert json.loads(lines[first + 1]) == {"kind": "wrong", "question": {"values": [3]}}
    assert any("a question with a 4" in line for line in lines)
    assert not lines[-1].endswith("mismatches 0")


def test_without_mismatches_the_last_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    right = Right()
    assert run([right], 1, 0.01) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"compared {len(right.asked)}, mismatches 0"


def test_a_seed_asks_the_same_questions_again() -> None:
    one, other = Right(), Right()
    run([one], 7, 0.01)
    run([other], 7, 0.01)
    least = min(len(one.asked), len(other.asked))
    assert least > 1
    assert one.asked[:least] == other.asked[:least]


def parts(value: Any) -> Iterator[int]:
    """The identities of all containers in a value."""
    if isinstance(value, dict | list | tuple):
        yield id(value)
        for part in value.values() if isinstance(value, dict) else value:
            yield from parts(part)


def test_what_is_drawn_shares_nothing_with_what_is_drawn_from() -> None:
    source = {name: value for name, value in vars(allocator_scenes).items() if name.isupper()}
    kept = set(parts(source)) | set(parts(edges.VALUES))
    for number in range(100):
        dice = Dice(Random(number))  # noqa: S311 - reproducible, nothing secret
        scene = edges.edgy_scene(dice)
        changeable = [scene.claims, scene.slices, scene.held, random_slice(dice)]
        assert not kept & set(parts(changeable)), number


def test_what_is_not_needed_is_left_out() -> None:
    def shows(one: Raw) -> bool:
        return any(2 in part.get("c", ()) for part in one.get("a", ()))

    question = {"a": [{"b": 1, "c": [1, 2, 3]}, {"d": 4}], "e": {"f": 5}}
    assert shrunk(question, shows) == {"a": [{"c": [2]}]}
