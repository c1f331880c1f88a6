from typing import Any

import pytest

from dragoon.errors import ApiInvalidError
from dragoon.kube.patching import applied, json_patched, merged, strategic


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        # Rows of RFC 7386, appendix A.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_follows_the_rfc(target: Any, patch: Any, expected: Any) -> None:
    assert merged(target, patch) == expected


def test_a_merge_leaves_its_target_alone() -> None:
    target = {"a": {"b": 1}}
    assert merged(target, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert target == {"a": {"b": 1}}


def test_a_strategic_patch_merges_known_lists_by_key() -> None:
    target = {"status": {"conditions": [{"type": "A", "status": "True", "reason": "r"}]}}
    patch = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]}}
    assert strategic(target, patch)["status"]["conditions"] == [
        {"type": "A", "status": "False", "reason": "r"},
        {"type": "B"},
    ]


def test_a_strategic_patch_replaces_other_lists_and_unites_finalizers() -> None:
    target = {"spec": {"devices": [1]}, "metadata": {"finalizers": ["a"]}}
    patch = {"spec": {"devices": [2]}, "metadata": {"finalizers": ["a", "b"]}}
    assert strategic(target, patch) == {
        "spec": {"devices": [2]},
        "metadata": {"finalizers": ["a", "b"]},
    }


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"conditions": [{"$patch": "delete", "type": "A"}]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"$setElementOrder/x": []},
    ],
)
def test_a_strategic_patch_with_a_directive_is_refused(patch: Any) -> None:
    with pytest.raises(ApiInvalidError, match=r"directive \$"):
        strategic({}, patch)


def test_an_applier_takes_back_what_it_no_longer_sets() -> None:
    before = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": {"y": 1}}}
    target = {"metadata": {"labels": {"a": "1", "b": "2", "c": "3"}}, "spec": {"x": {"y": 1}}}
    config = {"metadata": {"labels": {"a": "9"}}}
    assert applied(target, config, before) == {"metadata": {"labels": {"a": "9", "c": "3"}}}


def test_an_applier_takes_back_its_entries_of_a_keyed_list_only() -> None:
    mine, theirs = {"type": "Mine", "status": "True"}, {"type": "Theirs", "status": "True"}
    target = {"status": {"conditions": [mine, theirs]}}
    before = {"status": {"conditions": [mine]}}
    assert applied(target, {"status": {}}, before)["status"]["conditions"] == [theirs]
    changed = {"status": {"conditions": [{"type": "Mine", "status": "False"}]}}
    assert applied(target, changed, before)["status"]["conditions"] == [
        {"type": "Mine", "status": "False"},
        theirs,
    ]


def test_an_applier_takes_back_a_whole_list_without_keys() -> None:
    target = {"spec": {"devices": [1, 2], "n": 1}}
    assert applied(target, {"spec": {"n": 1}}, target) == {"spec": {"n": 1}}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/1", "value": 9}, {"l": [1, 9, 2], "m": {"a": 1}}),
        ({"op": "add", "path": "/l/-", "value": 9}, {"l": [1, 2, 9], "m": {"a": 1}}),
        ({"op": "add", "path": "/m/b~1c", "value": 9}, {"l": [1, 2], "m": {"a": 1, "b/c": 9}}),
        ({"op": "remove", "path": "/m/a"}, {"l": [1, 2], "m": {}}),
        ({"op": "remove", "path": "/l/0"}, {"l": [2], "m": {"a": 1}}),
        ({"op": "replace", "path": "/m", "value": 0}, {"l": [1, 2], "m": 0}),
        ({"op": "replace", "path": "", "value": 0}, 0),
        ({"op": "test", "path": "/l/0", "value": 1}, {"l": [1, 2], "m": {"a": 1}}),
    ],
)
def test_a_json_patch_operation(operation: Any, expected: Any) -> None:
    assert json_patched({"l": [1, 2], "m": {"a": 1}}, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/l/0", "value": 2},
        {"op": "remove", "path": "/none"},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "add", "path": "/l/0/deep", "value": 1},
        {"op": "move", "path": "/l", "from": "/m"},
        {"op": "remove", "path": "/l/-1"},
        "remove",
    ],
)
def test_a_json_patch_operation_that_fails_is_refused(operation: Any) -> None:
    with pytest.raises(ApiInvalidError, match="patch"):
        json_patched({"l": [1, 2]}, [operation])
