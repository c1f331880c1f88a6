"""Everything on which Dragoon and Kubernetes once differed, as found.jsonl holds it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.comparing import comparisons
from tests.oracle.go_oracle import Oracle, Validators


def found() -> list[Any]:
    lines = (Path(__file__).parent / "found.jsonl").read_text(encoding="utf-8").splitlines()
    questions = map(json.loads, lines)
    return [pytest.param(one["kind"], one["question"], id=one["about"]) for one in questions]


@pytest.mark.parametrize(("kind", "question"), found())
def test_what_was_found_is_mended(
    oracle: Oracle, validators: Validators, kind: str, question: dict[str, Any]
) -> None:
    (comparison, *_) = (one for one in comparisons(oracle, validators) if one.name == kind)
    assert comparison.difference(question) == ""
