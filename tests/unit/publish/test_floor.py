"""What each Kubernetes gets, and what the label of a node and its settings say."""

import pytest

from dragoon.api import names
from dragoon.api.forms import Form
from dragoon.publish.choosing import Wishes
from dragoon.publish.floor import floor
from dragoon.publish.wishing import wanted

ALL = Wishes(tuple(Form))
NEW = floor("v1.37.2")


@pytest.mark.parametrize(
    ("version", "publishes", "forms", "told"),
    [
        ("v1.38.0-beta.0", True, True, ""),
        ("v1.37.2", True, True, ""),
        ("v1.37.0-dragoon-memory", True, True, ""),
        ("v1.36.10+k3s1", True, True, ""),
        ("v1.36.4-eks-abcdef", True, True, ""),
        ("v1.36.3", True, True, "1.36.4 or later"),
        ("v1.36.2-gke.1000", True, True, "1.36.4 or later"),
        ("v1.36.1", True, False, "kubernetes#139034"),
        ("v1.36.0", True, False, "kubernetes#139034"),
        ("v1.36.0-rc.1", True, False, "kubernetes#139034"),
        ("v1.35.4", True, False, "without taints"),
        ("v1.34.2", False, False, "older than 1.35"),
        ("v1.9.0", False, False, "older than 1.35"),
        ("v2.0.0", True, True, ""),
        ("v0.0.0-master+$Format:%H$", True, False, "cannot be read"),
        ("", True, False, "cannot be read"),
        ("unknown", True, False, "cannot be read"),
    ],
)
def test_each_version_has_its_floor(version: str, publishes: bool, forms: bool, told: str) -> None:
    found = floor(version)
    assert (found.publishes, found.forms) == (publishes, forms)
    assert told in found.problem
    assert bool(found.problem) is bool(told)


def node(label: str | None = None) -> dict[str, object]:
    labels = {} if label is None else {names.LABEL_FORMS: label}
    return {"metadata": {"name": "n", "labels": labels}}


@pytest.mark.parametrize(
    ("label", "forms"),
    [
        ("whole", (Form.WHOLE,)),
        ("mig", (Form.MIG,)),
        ("mig_shared_whole", tuple(Form)),
        ("whole.mig", (Form.WHOLE, Form.MIG)),
        ("whole-shared", (Form.WHOLE, Form.SHARED)),
    ],
)
def test_the_label_of_the_node_wins_over_the_settings(label: str, forms: tuple[Form, ...]) -> None:
    settings = Wishes((Form.SHARED,), frozenset({"1g.20gb"}))
    found = wanted(node(label), settings, NEW)
    assert found.wishes == Wishes(forms, frozenset({"1g.20gb"}))
    assert (found.source, found.problems) == ("label", ())


def test_without_a_label_the_settings_count() -> None:
    found = wanted(node(), ALL, NEW)
    assert (found.wishes, found.source, found.problems) == (ALL, "settings", ())
    assert wanted({"metadata": {"name": "n"}}, ALL, NEW).wishes == ALL


@pytest.mark.parametrize("label", ["", "all", "whole_", "Whole", "whole_nvlink"])
def test_a_label_that_is_none_is_told_and_does_not_count(label: str) -> None:
    found = wanted(node(label), ALL, NEW)
    assert (found.wishes, found.source) == (ALL, "settings")
    (problem,) = found.problems
    assert names.LABEL_FORMS in problem
    assert "allowed is a list of whole, shared, mig" in problem


def test_an_old_kubernetes_gets_whole_gpus_whatever_is_wanted() -> None:
    for raw in (node(), node("shared_mig")):
        found = wanted(raw, ALL, floor("v1.36.1"))
        assert (found.wishes.forms, found.source) == ((Form.WHOLE,), "Kubernetes")
        assert "kubernetes#139034" in found.problems[0]


def test_an_old_kubernetes_is_no_problem_where_only_whole_gpus_are_wanted() -> None:
    found = wanted(node(), Wishes(), floor("v1.36.1"))
    assert (found.source, found.problems) == ("settings", ())


def test_a_kubernetes_that_gets_nothing_and_one_to_be_careful_with_are_always_told() -> None:
    assert wanted(node(), Wishes(), floor("v1.34.0")).problems
    assert wanted(node(), Wishes(), floor("v1.36.3")).problems
