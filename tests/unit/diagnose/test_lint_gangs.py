"""What makes pods a gang is checked in the files, for no API server looks at it."""

from typing import Any

import pytest

from dragoon.api import gang
from tests.unit.diagnose.cases import codes, findings, only

MARKS: dict[str, Any] = {"labels": {gang.LABEL: "g"}, "annotations": {gang.ANNOTATION_SIZE: "4"}}


def job(on_pods: dict[str, Any], **on_job: Any) -> dict[str, Any]:
    template = {"metadata": on_pods, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"parallelism": 4, "template": template}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", **on_job},
        "spec": spec,
    }


def pod(**metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "i"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **metadata},
        "spec": spec,
    }


@pytest.mark.parametrize(
    "right",
    [
        job({}),
        job(MARKS),
        job(MARKS, labels={gang.LABEL: "g"}),
        pod(**MARKS),
        pod(labels={gang.LABEL: "g"}, annotations={gang.ANNOTATION_SCOPE: "name"}),
        pod(labels={gang.LABEL: "g"}, annotations={gang.ANNOTATION_SIZE: "4096"}),
    ],
)
def test_right_marks_have_no_finding(right: dict[str, Any]) -> None:
    assert findings(right) == ()


@pytest.mark.parametrize("name", ["G", "a_b", "-a", "a" * 64, ""])
def test_a_name_that_no_gang_can_have_is_found(name: str) -> None:
    found = only(findings(job({"labels": {gang.LABEL: name}})))
    assert (found.code, found.path) == (
        "DRG701",
        f"spec.template.metadata.labels.{gang.LABEL}",
    )
    assert "lower-case DNS name" in found.instead


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        (gang.ANNOTATION_SIZE, "0", "a whole number from 1 to 4096"),
        (gang.ANNOTATION_SIZE, "4097", "a whole number from 1 to 4096"),
        (gang.ANNOTATION_SIZE, "1_0", "a whole number from 1 to 4096"),
        (gang.ANNOTATION_SIZE, "\u0663", "a whole number from 1 to 4096"),
        (gang.ANNOTATION_SIZE, 4, 'text: "4"'),
        (gang.ANNOTATION_SIZE, None, 'text: ""'),
        (gang.ANNOTATION_SCOPE, "all", "name or owner"),
        (gang.ANNOTATION_SCOPE, True, 'text: "true"'),
        (gang.ANNOTATION_SOURCE, "", "docs/gang-sources.md"),
    ],
)
def test_a_value_that_is_not_allowed_is_found(key: str, value: object, instead: str) -> None:
    found = only(findings(pod(labels={gang.LABEL: "g"}, annotations={key: value})))
    assert (found.code, found.path) == ("DRG702", f"metadata.annotations.{key}")
    assert instead in found.instead


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_what_stands_on_the_job_and_not_on_its_pods_is_read_by_nobody(kind: str) -> None:
    key = next(iter(MARKS[kind]))
    found = only(findings(job({}, **{kind: MARKS[kind]})))
    assert (found.code, found.severity) == ("DRG703", "warning")
    assert found.path == f"metadata.{kind}.{key}"
    assert found.instead == f"spec.template.metadata.{kind}"


@pytest.mark.parametrize(
    ("marks", "instead"),
    [
        ({"annotations": {gang.ANNOTATION_SIZE: "4"}}, "the label beside it"),
        ({"annotations": {gang.LABEL: "g"}}, "a label"),
        ({"labels": {gang.ANNOTATION_SIZE: "4"}}, "an annotation"),
        ({"labels": {"dragoon.dev/gangs": "g"}}, f"did you mean {gang.LABEL}?"),
        (
            {"labels": {gang.LABEL: "g"}, "annotations": {"dragoon.dev/gang-sise": "4"}},
            f"did you mean {gang.ANNOTATION_SIZE}?",
        ),
    ],
)
def test_a_mark_that_means_nothing_where_it_stands_is_found(
    marks: dict[str, Any], instead: str
) -> None:
    found = only(findings(job(marks)))
    assert (found.code, found.instead) == ("DRG703", instead)


def test_every_template_of_an_object_is_looked_at() -> None:
    template = {"spec": {"template": {"metadata": {"labels": {gang.LABEL: "G"}}}}}
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "s"},
        "spec": {
            "replicatedJobs": [
                {"name": "a", "template": template},
                {"name": "b", "template": template},
            ]
        },
    }
    assert codes(findings(jobset)) == ["DRG701", "DRG701"]
