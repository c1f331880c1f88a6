"""Manifests with anything anywhere: lint and simulate answer, and never fail."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.diagnose.linting import CHECKS, lint
from dragoon.diagnose.simulating import simulate
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import (
    GPU_CLASS,
    class_,
    exactly,
    manifests,
    pod,
    slice_,
    template,
)
from tests.unit.diagnose.scenes import gpus, holding, node, snapshot, wanting

Raw = dict[str, Any]

_GPU = "device.attributes['gpu.dragoon.dev']"
_ODD: st.SearchStrategy[Any] = st.sampled_from(
    (None, 0, -1, 3, 1.5, True, "", "text", "gpu", [], [1], ["a"], [None], {}, {"a": 1}, [{}], [[]])
)
_OBJECTS: tuple[Raw, ...] = (
    wanting(
        exactly(
            count=2,
            selectors=[{"cel": {"expression": f"{_GPU}.type == 'gpu' && {_GPU}.index < 2"}}],
            tolerations=[{"key": "k", "operator": "Exists"}],
            capacity={"requests": {"memory": "80Gi"}},
        ),
        constraints=[{"requests": ["gpu"], "matchAttribute": "gpu.dragoon.dev/nvlinkDomain"}],
        config=[
            {
                "requests": ["gpu"],
                "opaque": {
                    "driver": "gpu.dragoon.dev",
                    "parameters": {"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConfig"},
                },
            }
        ],
    ),
    template(
        {"name": "g", "firstAvailable": [{"name": "a", "deviceClassName": "mig.dragoon.dev"}]}
    ),
    pod(
        [
            {"name": "a", "resourceClaimName": "want"},
            {"name": "b", "resourceClaimTemplateName": "t"},
        ],
        [{"name": "a", "request": "gpu"}, {"name": "b"}],
    ),
    class_("mine", "device.driver == 'x'"),
    slice_(*gpus(2)),
    holding("held", "gpu-0"),
    node(zone="z"),
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "template": pod([{"name": "b", "resourceClaimTemplateName": "t"}], [{"name": "b"}]),
        },
    },
)


@st.composite
def odd(draw: st.DrawFn) -> list[Raw]:
    """All objects, with one to three parts of them replaced by something else or taken out."""
    objects = copy.deepcopy(list(_OBJECTS))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = objects
        key: Any = draw(st.integers(0, len(objects) - 1))
        while isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 5)):
            place = place[key]
            keys = sorted(place, key=str) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys))
        if place is objects or draw(st.booleans()):
            place[key] = copy.deepcopy(draw(_ODD))
        else:
            del place[key]
        objects = [one for one in objects if one]
    return objects


def cluster() -> ClusterSnapshot:
    return snapshot(GPU_CLASS, slice_(*gpus(2), node="m"), node("m"))


@settings(max_examples=300, deadline=None)
@given(odd())
def test_lint_answers_whatever_the_files_hold(objects: list[Raw]) -> None:
    found = lint(manifests(*objects), cluster())
    assert all(one.code in CHECKS and one.origin.document > 0 for one in found)
    assert found == lint(manifests(*objects), cluster())


@settings(max_examples=300, deadline=None)
@given(odd())
def test_simulate_answers_whatever_the_files_hold(objects: list[Raw]) -> None:
    found = simulate(cluster(), manifests(*objects))
    assert all(len(group.placed) <= group.wanted for group in found.groups)
