"""Answers that are nested deeper than anybody reads them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoon.errors import ApiUnavailableError
from dragoon.kube import answers
from dragoon.kube.nesting import pruned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DEEP = {"list": "[" * 5000 + "]" * 5000, "object": '{"":' * 5000 + "1" + "}" * 5000}


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


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_one_deep_claim_does_not_keep_the_others_from_being_read(deep: str) -> None:
    claims = [
        '{"metadata":{"name":"first"}}',
        f'{{"spec":{{"parameters":{deep}}},"status":{{"allocation":{{}}}}}}',
        '{"metadata":{"name":"last"}}',
    ]
    found = answers.decoded(f'{{"items":[{",".join(claims)}]}}'.encode(), "a test")
    first, odd, last = found["items"]
    assert (first["metadata"]["name"], last["metadata"]["name"]) == ("first", "last")
    assert odd["status"] == {"allocation": {}}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_a_deep_claim_can_be_watched(deep: str) -> None:
    line = f'{{"type":"ADDED","object":{{"kind":"ResourceClaim","spec":{deep}}}}}'
    assert answers.event(line.encode(), "a test").object["kind"] == "ResourceClaim"


def test_a_deep_answer_that_is_no_json_is_told() -> None:
    with pytest.raises(ApiUnavailableError, match="not JSON"):
        answers.decoded(b"[" * 5000, "a test")
