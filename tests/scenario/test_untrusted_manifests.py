"""What a user writes into claims and pods reaches no path, environment, command or other device.

The whole node process, with a kubelet that asks for claims as they come. The API server would refuse
some of this; the node does not rely on that. Every text of a user holds the word MARK.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef, claim_ref
from dragoon.app.plugin import Plugin
from dragoon.errors import KubeletError
from dragoon.kube.port import CLAIMS, Object
from dragoon.kubelet.standin import KubeletStandIn
from tests.scenario.pluginbed import DRIVER, NODE, Bed, until
from tests.scenario.test_plugin import scraped
from tests.scenario.test_plugin_permissions import a_library

FIRST = "gpu-0000-11-00-0"
SHARED = f"{FIRST}-shared"
MARK = "zzmark"
VERSION = "gpu.dragoon.dev/v1alpha1"

_ODD = (
    f"../../../../tmp/{MARK}",
    f"/etc/{MARK}",
    f"{MARK}\nNVIDIA_VISIBLE_DEVICES=all",
    f"{MARK}=all",
    f"$({MARK})",
    f"`{MARK}`; {MARK} &",
    f"{MARK}\x1b[2J\x00",
    f"-{MARK}",
    f"{MARK}\u202e",
    f"<script>{MARK}</script>",
)
_CDI_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*[A-Za-z0-9]")
_LONG = f"{MARK}." + "a" * 63 + "." + "b" * 63 + "." + "c" * 63 + ".d"
"""A name as long as Kubernetes takes, with the characters that it takes."""


def _claim(name: str, namespace: str = "default", **parts: Any) -> Object:
    """A claim of the first GPU. parts: what is other in metadata, spec, result or status."""
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": f"{NODE}/gpu",
        "device": FIRST,
        **parts.get("result", {}),
    }
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.dragoon.dev"}}]
    devices = {"results": [result], **parts.get("devices", {})}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": name, "namespace": namespace, **parts.get("metadata", {})},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": devices}, **parts.get("status", {})},
    }


def _config(parameters: Any) -> dict[str, Any]:
    opaque = {"driver": DRIVER, "parameters": parameters}
    return {"config": [{"source": "FromClaim", "requests": ["gpu"], "opaque": opaque}]}


def _whole() -> Iterator[tuple[str, Object]]:
    """Claims of a whole GPU."""
    yield "long name", _claim(_LONG)
    yield "long namespace", _claim("n", f"{MARK}-{'n' * 56}")
    yield "number", _claim("0")
    yield "dots", _claim(f"json.{MARK}.json")
    for number, text in enumerate(_ODD):
        yield f"request {number}", _claim(f"r{number}", result={"request": text})
        yield f"subrequest {number}", _claim(f"s{number}", result={"request": f"gpu/{text}"})
        yield f"device {number}", _claim(f"d{number}", result={"device": text})
        yield f"beside {number}", _claim(f"b{number}", result={"device": f"{FIRST}/../{text}"})
        yield f"pool {number}", _claim(f"p{number}", result={"pool": text})
        yield f"share {number}", _claim(f"i{number}", result={"shareID": text})
        yield (
            f"metadata {number}",
            _claim(
                f"m{number}",
                metadata={
                    "labels": {text: text},
                    "annotations": {text: text, "cdi.k8s.io/x": text},
                },
            ),
        )
        yield (
            f"user {number}",
            _claim(
                f"u{number}",
                status={"reservedFor": [{"resource": "pods", "name": text, "uid": text}]},
            ),
        )
        for position, field in enumerate(("apiVersion", "kind", "timeSlice", text)):
            parameters = {"apiVersion": VERSION, "kind": "GpuConfig", field: text}
            yield f"config {field!r}", _claim(f"c{number}-{position}", devices=_config(parameters))


def _shares() -> Iterator[tuple[str, Object]]:
    """Shares, with limits that are none."""
    share = "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"
    for number, amount in enumerate(
        (
            "-1Gi",
            "0",
            "1e99",
            "9999999Ei",
            "1Gi\n8Gi",
            f"{MARK}",
            "0x10000000000",
            "1.5",
            "",
            "1Gi,2",
        )
    ):
        for capacity in ("memory", "cores"):
            consumed = {"memory": "4Gi", "cores": "25", capacity: amount}
            result = {"device": SHARED, "shareID": share, "consumedCapacity": consumed}
            yield f"{capacity} {amount!r}", _claim(f"l{number}{capacity}", result=result)
    for number, text in enumerate(_ODD):
        result = {
            "device": SHARED,
            "shareID": text,
            "consumedCapacity": {"memory": "4Gi", text: text},
        }
        yield f"share {number}", _claim(f"x{number}", result=result)
        parameters = {"apiVersion": VERSION, "kind": "SharedGpuConfig", "tier": text}
        good = {"device": SHARED, "shareID": share, "consumedCapacity": {"memory": "4Gi"}}
        yield f"tier {number}", _claim(f"t{number}", result=good, devices=_config(parameters))


async def test_claims_of_whole_gpus_with_anything_in_them(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await kubelet.wait_registered(DRIVER)
        prepared = [
            label for label, claim in _whole() if await _tried(bed, kubelet, plugin, claim, label)
        ]
    # Names, labels and users are no reason to refuse; what names another thing is one.
    expected = {"long name", "long namespace", "number", "dots", "metadata 0", "user 0"}
    assert expected <= set(prepared)
    assert {label.split()[0] for label in prepared} <= {
        *("long", "number", "dots", "request", "subrequest", "metadata", "user", "share"),
    }


async def test_claims_of_shares_with_limits_that_are_none(bed: Bed) -> None:
    async with (
        bed.kubelet() as kubelet,
        bed.running(forms="whole,shared", allow_unenforced_shares=True) as plugin,
    ):
        await kubelet.wait_registered(DRIVER)
        await until("published", lambda: not plugin.not_ready())
        prepared = [
            label for label, claim in _shares() if await _tried(bed, kubelet, plugin, claim, label)
        ]
    # A share without an ID that can be one, or with a limit that is none, is never made.
    assert not [label for label in prepared if label.startswith(("memory", "tier"))]


@pytest.mark.parametrize("text", _ODD)
async def test_a_pod_whose_container_has_anything_as_its_name(bed: Bed, text: str) -> None:
    """With tier hami the container's name is part of a path: it is checked once more."""
    async with (
        bed.kubelet() as kubelet,
        bed.running(forms="shared", **a_library(bed)) as plugin,
    ):
        await kubelet.wait_registered(DRIVER)
        await until("published", lambda: not plugin.not_ready())
        claim = await _share_of_a_pod(bed, text)
        assert not await _tried(bed, kubelet, plugin, claim, text)


async def _share_of_a_pod(bed: Bed, container: str) -> Object:
    """A share made for a pod whose only container, which uses it, is called so."""
    owner = await bed.sharer(container=container, image=MARK)
    consumed = {"memory": "4Gi", "cores": "25"}
    share = "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"
    result = {"device": SHARED, "shareID": share, "consumedCapacity": consumed}
    return _claim("share", metadata={"ownerReferences": [owner]}, result=result)


async def _tried(
    bed: Bed, kubelet: KubeletStandIn, plugin: Plugin, body: Object, label: str
) -> bool:
    """Whether the claim was prepared. Nothing of it shows where it must not, and nothing stays."""
    claim = await _created(bed, body)
    try:
        devices = await kubelet.prepare(DRIVER, [claim])
    except KubeletError:
        prepared = False
    else:
        prepared = True
        assert {one.device for one in devices[claim.uid]} <= {FIRST, SHARED}, label
    _nothing_shows(bed, label)
    if prepared:
        assert len(_specs(bed)) == 1, label
        await kubelet.unprepare(DRIVER, [claim])
    assert _specs(bed) == [], label
    assert list((bed.kubelet_root / "plugins" / DRIVER / "journal").glob("*.json")) == [], label
    await bed.memory.delete(CLAIMS, claim.name, namespace=claim.namespace)
    return prepared


async def _created(bed: Bed, body: Object) -> ClaimRef:
    made = await bed.memory.create(CLAIMS, {**body, "status": {}})
    made["status"] = body["status"]
    return claim_ref(await bed.memory.replace(CLAIMS, made, subresource="status"))


def _specs(bed: Bed) -> list[Path]:
    return sorted(bed.cdi_root.glob("*.json"))


def _nothing_shows(bed: Bed, label: str) -> None:
    """The word stands in no path below the node's folders, and in nothing that a container gets.

    Of a request's name and a share's ID the name of a CDI device is made: only where they can be one.
    """
    paths = [str(path) for path in bed.root.rglob("*")]
    assert not [path for path in paths if MARK in path], label
    assert not Path("/tmp", MARK).exists()
    for spec in _specs(bed):
        found = json.loads(spec.read_text("utf-8"))
        devices = found["devices"]
        assert all(_CDI_NAME.fullmatch(one["name"]) for one in devices), label
        edits = [one["containerEdits"] for one in devices]
        for edit in (*edits, found.get("containerEdits", {})):
            assert MARK not in json.dumps(edit), label
            names = [line.partition("=")[0] for line in edit.get("env", ())]
            assert all(name.startswith(("DRAGOON_", "NVIDIA_", "CUDA_")) for name in names), label
            assert edit.get("hooks", []) == [], label


async def test_no_text_of_a_user_is_in_a_metric(bed: Bed) -> None:
    async with bed.kubelet() as kubelet, bed.running() as plugin:
        await kubelet.wait_registered(DRIVER)
        for number, text in enumerate(_ODD):
            named = _claim(f"n{number}", metadata={"annotations": {text: text}})
            await _tried(bed, kubelet, plugin, named, text)
            wrong = _claim(f"d{number}", result={"device": text})
            await _tried(bed, kubelet, plugin, wrong, text)
        refused = f'dragoon_prepare_total{{result="UnknownDevice"}} {len(_ODD)}.0'
        metrics = await scraped(plugin, refused)
    assert MARK not in metrics
