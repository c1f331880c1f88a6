import pytest

from dragoon.errors import ApiInvalidError
from dragoon.kube.selecting import matcher, parsed_fields


def test_a_field_selector_reads_escapes() -> None:
    assert parsed_fields(r"spec.nodeName=a,metadata.name==b\,c\=d") == {
        "spec.nodeName": "a",
        "metadata.name": "b,c=d",
    }
    assert parsed_fields("") == {}


@pytest.mark.parametrize("selector", ["spec.nodeName", "spec.nodeName!=a"])
def test_only_equality_is_served_for_fields(selector: str) -> None:
    with pytest.raises(ApiInvalidError, match="fieldSelector"):
        parsed_fields(selector)


def test_an_absent_field_is_the_empty_string() -> None:
    matches = matcher({"spec.nodeName": ""}, None, ("spec.nodeName",))
    assert matches({"metadata": {}})
    assert matches({"metadata": {}, "spec": {}})
    assert not matches({"metadata": {}, "spec": {"nodeName": "n"}})


@pytest.mark.parametrize("selector", ["a=b=c", "a in x", "=b", "a in (b"])
def test_a_label_selector_that_cannot_be_read_is_invalid(selector: str) -> None:
    with pytest.raises(ApiInvalidError, match="labelSelector"):
        matcher(None, selector, ())
