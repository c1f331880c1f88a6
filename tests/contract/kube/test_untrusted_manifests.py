"""What users may write, on a real API server with our policies: the largest passes, bombs do not."""

import os
from typing import Any

import msgspec
import pytest

from dragoon.errors import ApiForbiddenError, ApiInvalidError
from dragoon.kube.port import CLAIMS, CLASSES, PODS, TEMPLATES, Object
from tests.contract.kube.policies import Place
from tests.contract.kube.servers import REAL

pytestmark = pytest.mark.e2e

if REAL not in os.environ:
    pytest.skip(f"{REAL} is not set", allow_module_level=True)

_MOST = 32
"""Requests of a claim, and configs of it (resource.k8s.io/v1)."""
_PADDING = "x" * 9_000
"""Parameters have at most 10 KiB."""


def _named(place: Place, name: str, spec: Any) -> Object:
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": name, "namespace": place.server.namespace},
        "spec": spec,
    }


def _selecting(place: Place, expression: str) -> Object:
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    return _named(place, "c", {"devices": {"requests": [{"name": "g", "exactly": exactly}]}})


def _configs(driver: str, parameters: Object) -> list[Object]:
    return [{"opaque": {"driver": driver, "parameters": parameters}} for _ in range(_MOST)]


async def test_the_largest_claim_costs_no_policy_more_than_it_may(place: Place) -> None:
    """A policy that runs out of its cost refuses everybody who writes much."""
    ours = {"apiVersion": f"{place.driver}/v1alpha1", "kind": "SharedGpuConfig", "tier": "hami"}
    for config in (
        _configs("nic.example.com", {"text": _PADDING}),
        _configs(place.driver, ours),
        [*_configs("nic.example.com", {"text": _PADDING})[:31], *_configs(place.driver, ours)[:1]],
    ):
        requests = [
            {"name": f"r{number}", "exactly": {"deviceClassName": "gpu"}} for number in range(_MOST)
        ]
        claim = _named(place, "largest", {"devices": {"requests": requests, "config": config}})
        await place.api.create(CLAIMS, claim, dry_run=True)
        template = {**claim, "kind": TEMPLATES.kind, "spec": {"spec": claim["spec"]}}
        await place.api.create(TEMPLATES, template, dry_run=True)
        wide = {
            "apiVersion": CLASSES.api_version,
            "kind": CLASSES.kind,
            "metadata": {"name": f"wide-{place.server.unique}"},
            "spec": {"config": config},
        }
        await place.api.create(CLASSES, wide, dry_run=True)


@pytest.mark.parametrize(
    "odd",
    [b"[" * 5_000 + b"]" * 5_000, rb'"\ud800"', rb'"\udc00\u0041"', b'"\xff"'],
    ids=["endless nesting", "half a pair", "the other half", "no UTF-8"],
)
async def test_one_odd_claim_keeps_no_other_from_being_read(place: Place, odd: bytes) -> None:
    """The server stores these parameters as they are written, and hands them out in its lists."""
    opaque = {"driver": "nic.example.com", "parameters": msgspec.Raw(b'{"a":%b}' % odd)}
    devices = {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}
    configs = {"odd": [{"opaque": opaque}], "plain": []}
    for name, config in configs.items():
        claim = _named(place, name, {"devices": {**devices, "config": config}})
        await place.api.create(CLAIMS, claim)

    found = await place.api.list(CLAIMS, namespace=place.server.namespace)

    assert set(configs) <= {claim["metadata"]["name"] for claim in found.items}
    for name in configs:
        await place.api.delete(CLAIMS, name, namespace=place.server.namespace)


@pytest.mark.parametrize(
    "parameters",
    [
        {"text": _PADDING},
        {"kind": {"kind": {"kind": "GpuConfig"}}},
        {"kind": "GpuConfig", "timeSlice": ["Long"]},
        {"kind": "GpuConfig\n", "timeSlice": "Long"},
        {"kind": "SharedGpuConfig", "tier": "hami; rm -rf /"},
        {"kind": "SharedGpuConfig", "tier": "../../none"},
        {"kind": "SharedGpuConfig", "tier": "none\u202e"},
    ],
    ids=["padding", "nested", "list", "line break", "command", "path", "direction"],
)
async def test_odd_configs_for_us_are_refused(place: Place, parameters: Object) -> None:
    version = {"apiVersion": f"{place.driver}/v1alpha1"}
    with pytest.raises((ApiForbiddenError, ApiInvalidError)):
        await place.api.create(CLAIMS, place.claim({**version, **parameters}), dry_run=True)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, true)))",
        "true && " * 1300 + "true",
        "(" * 300 + "true" + ")" * 300,
        "device.driver.matches('(?=a)')",
    ],
    ids=["cost", "length", "depth", "look-ahead"],
)
async def test_a_bomb_in_a_selector_is_not_stored(place: Place, expression: str) -> None:
    with pytest.raises((ApiForbiddenError, ApiInvalidError)):
        await place.api.create(CLAIMS, _selecting(place, expression), dry_run=True)


@pytest.mark.parametrize(
    "name",
    ["../../etc", "a/b", "A", "a_b", "a\nb", "-a", "a" * 254, "a b", "$(x)", "a\u202eb"],
)
async def test_names_that_could_be_something_else_are_not_stored(place: Place, name: str) -> None:
    """What the node relies on once more: claims, pods, containers, requests and labels."""
    space = place.server.namespace
    container = {"name": "c", "image": "i"}
    for body in (
        place.pod({**container, "name": name}),
        {
            **place.pod(container),
            "metadata": {"name": "p", "namespace": space, "labels": {"x": f"{name}/"}},
        },
    ):
        with pytest.raises((ApiForbiddenError, ApiInvalidError)):
            await place.api.create(PODS, body, dry_run=True)
    exactly = {"deviceClassName": "gpu"}
    for body in (
        _named(place, "c", {"devices": {"requests": [{"name": name, "exactly": exactly}]}}),
        {
            **_named(place, "c", {}),
            "metadata": {"generateName": "x", "name": name, "namespace": space},
        },
    ):
        with pytest.raises((ApiForbiddenError, ApiInvalidError)):
            await place.api.create(CLAIMS, body, dry_run=True)


async def test_annotations_hold_anything_and_change_nothing(place: Place) -> None:
    odd = {
        "dragoon.dev/gang-size": "9" * 4000,
        "dragoon.dev/gang-scope": "\x1b[2J\n../..",
        "a": "<b>",
    }
    pod = place.pod({"name": "c", "image": "i"})
    pod["metadata"]["annotations"] = odd
    made = await place.api.create(PODS, pod, dry_run=True)
    assert made["metadata"]["annotations"] == odd
    assert [one["name"] for one in made["spec"]["containers"][0]["env"]] == [
        "NVIDIA_VISIBLE_DEVICES"
    ]
