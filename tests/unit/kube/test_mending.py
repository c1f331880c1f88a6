"""Answers that an API server gives and a strict decoder refuses."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoon.errors import ApiUnavailableError
from dragoon.kube import answers
from dragoon.kube.mending import mended, pruned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
ODD = {
    "deep list": b"[" * 5000 + b"]" * 5000,
    "deep object": b'{"":' * 5000 + b"1" + b"}" * 5000,
    "first half of a pair": rb'"\ud800"',
    "second half": rb'"\uDC00x"',
    "half before a letter": rb'"\ud800\u0041"',
    "half as a name": rb'{"\ud83d": 1}',
    "no UTF-8": b'"\xff"',
    "all": b'["\xff", "\\ud800", ' + b"[" * 5000 + b"]" * 5000 + b"]",
}


def cut(found: Any, levels: int) -> Any:
    """What is left of a value."""
    if not isinstance(found, list | dict):
        return found
    if not levels:
        return None
    if isinstance(found, list):
        return [cut(one, levels - 1) for one in found]
    return {name: cut(one, levels - 1) for name, one in found.items()}


@given(JSON, st.integers(0, 5), st.booleans())
def test_only_what_is_too_deep_is_null(found: Any, levels: int, plain: bool) -> None:
    raw = json.dumps(found, ensure_ascii=plain).encode()
    assert json.loads(pruned(raw, levels)) == cut(found, levels)


def test_what_is_not_too_deep_stays_byte_for_byte() -> None:
    raw = b' {"a\\"[[[": [1, {"}": "\\\\"}] , "b":[ ]}\n'
    assert pruned(raw, 3) == raw


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d\ud83d\uDE00\ude00"', "\ufffd\U0001f600\ufffd"),
        (rb'"\\ud800"', "\\ud800"),
        (rb'"\\\ud800"', "\\\ufffd"),
        (rb'"\"\u00e4\n"', '"\u00e4\n'),
        (b'"\xc3\xa4\xc3"', "\u00e4\ufffd"),
    ],
)
def test_only_what_is_no_text_is_replaced(raw: bytes, text: str) -> None:
    assert json.loads(mended(raw)) == text


@given(JSON)
def test_what_is_well_means_the_same_afterwards(found: Any) -> None:
    assert json.loads(mended(json.dumps(found).encode())) == found


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_one_odd_claim_does_not_keep_the_others_from_being_read(odd: bytes) -> None:
    claims = (
        b'{"metadata":{"name":"first"}}',
        b'{"spec":{"parameters":%b},"status":{"allocation":{}}}' % odd,
        b'{"metadata":{"name":"last"}}',
    )
    found = answers.decoded(b'{"items":[%b]}' % b",".join(claims), "a test")
    first, middle, last = found["items"]
    assert (first["metadata"]["name"], last["metadata"]["name"]) == ("first", "last")
    assert middle["status"] == {"allocation": {}}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_claim_can_be_watched(odd: bytes) -> None:
    line = b'{"type":"ADDED","object":{"kind":"ResourceClaim","spec":%b}}' % odd
    assert answers.event(line, "a test").object["kind"] == "ResourceClaim"


@pytest.mark.parametrize("raw", [b"[" * 5000, b"", b"{", b"<html>", b'"', b'"\\', b"\xff", b"{}}"])
def test_an_answer_that_is_no_json_is_told(raw: bytes) -> None:
    with pytest.raises(ApiUnavailableError, match="not JSON"):
        answers.decoded(raw, "a test")
