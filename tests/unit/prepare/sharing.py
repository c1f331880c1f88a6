"""Pods with shares of GPUs, on a node that can limit them: what tests of shares start from."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.opaque_config import API_VERSION, TimeSlice
from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.naming import shared_name
from dragoon.kube.port import CLAIMS, PODS, Object
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.cgroup import Cgroup
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.hami import Hami
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.enforcement.none import Unenforced
from dragoon.prepare.engine import Engine
from dragoon.prepare.injection import Injected, inject
from dragoon.prepare.paths import Paths
from tests.unit.prepare.scene import DRIVER, POOL, Scene, claim_object, gpu, settings

GIB = 1 << 30
CARD = 24 * GIB
LIBRARY = Path("/opt/hami/libvgpu.so")
LIBRARY_BYTES = b"not really a library"
SHA256 = hashlib.sha256(LIBRARY_BYTES).hexdigest()
PATHS = settings(Path("/node")).paths
ALL = (Tier.CGROUP, Tier.HAMI, Tier.NONE)


def shared(number: int) -> str:
    return shared_name(PciAddress(0, 0x10 + number, 0))


def share(
    number: int = 0,
    memory: str = "4Gi",
    *,
    cores: str = "0",
    share_id: str = "s-1",
    **changes: Any,
) -> dict[str, Any]:
    """One share in an allocation, as kube-scheduler writes it."""
    fields = {
        "request": "slice",
        "driver": DRIVER,
        "pool": POOL,
        "device": shared(number),
        "shareID": share_id,
        "consumedCapacity": {"memory": memory, "cores": cores},
    }
    return fields | changes


def asks(tier: str | None = None, requests: Iterable[str] = (), **fields: Any) -> dict[str, Any]:
    """A config block of a claim that asks for a tier."""
    parameters = {"apiVersion": API_VERSION, "kind": "SharedGpuConfig", **fields}
    if tier:
        parameters["tier"] = tier
    return {
        "source": "FromClaim",
        "requests": list(requests),
        "opaque": {"driver": DRIVER, "parameters": parameters},
    }


def cards(count: int = 3, **changes: Any) -> Inventory:
    """GPUs that say how much memory they have."""
    fields = {"memory_bytes": CARD, "compute_capability": (9, 0)} | changes
    return Inventory(gpus=tuple(gpu(n, **fields) for n in range(count)), simulated=True)


def enforcement(
    *tiers: Tier, interval: TimeSlice = TimeSlice.DEFAULT, paths: Paths = PATHS
) -> Enforcement:
    """The tiers of a node of which these work; hami alone, if none is named."""
    found = Enforcement(
        (Cgroup(None), Hami(paths, LIBRARY, SHA256), Unenforced(allowed=True, interval=interval))
    )
    working = tiers or (Tier.HAMI,)
    found.found = NodeEnforcement.of(
        working, {tier: "switched off here" for tier in ALL if tier not in working}
    )
    return found


def sharing_scene(*tiers: Tier, interval: TimeSlice = TimeSlice.DEFAULT) -> Scene:
    """A node with three cards, and the library."""
    scene = Scene()
    scene.gpus.found = cards()
    scene.enforcement = enforcement(*tiers, interval=interval)
    install_library(scene)
    return scene


def install_library(scene: Scene, data: bytes = LIBRARY_BYTES) -> None:
    """The administrator puts the library on the node, durably."""
    effects = MemoryEffects(scene.disk)
    effects.make_folder(LIBRARY.parent, 0o755)
    effects.write(LIBRARY, data, 0o644)
    effects.sync(LIBRARY)
    for folder in (LIBRARY.parent, *LIBRARY.parent.parents):
        effects.sync_folder(folder)


def container(name: str, *claims: str, **more: Any) -> dict[str, Any]:
    """A container that names claims of its pod, each `claim` or `claim/request`."""
    named = [
        {"name": claim.partition("/")[0]}
        | ({"request": claim.partition("/")[2]} if "/" in claim else {})
        for claim in claims
    ]
    return {"name": name, "image": "i", "resources": {"claims": named}, **more}


async def pod_with_claims(
    scene: Scene,
    name: str,
    claims: Mapping[str, Iterable[dict[str, Any]]],
    *containers: dict[str, Any],
    config: Mapping[str, Any] | None = None,
    **spec: Any,
) -> tuple[Object, dict[str, ClaimRef]]:
    """A pod on this node and the claims made for it from templates, by their names in the pod.

    Without containers, one that sees everything.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {
            "nodeName": "node-a",
            "resourceClaims": [{"name": c, "resourceClaimTemplateName": c} for c in claims],
            "containers": list(containers) or [container("main", *claims)],
            **spec,
        },
    }
    pod = await scene.api.create(PODS, body)
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name,
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    refs = {}
    for short, results in claims.items():
        claim = claim_object(f"{name}-{short}", *results, config=(config or {}).get(short, ()))
        claim["metadata"]["ownerReferences"] = [owner]
        created = await scene.api.create(CLAIMS, claim)
        claim["metadata"] = created["metadata"]
        consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
        claim["status"]["reservedFor"] = [consumer]
        await scene.api.replace(CLAIMS, claim, subresource="status")
        refs[short] = ClaimRef("team-a", claim["metadata"]["name"], created["metadata"]["uid"])
    pod["status"] = {
        "resourceClaimStatuses": [
            {"name": short, "resourceClaimName": ref.name} for short, ref in refs.items()
        ]
    }
    return await scene.api.replace(PODS, pod, subresource="status"), refs


def limits_of(scene: Scene, pod: Any, name: str = "main") -> list[tuple[str, int, int]]:
    """(UUID, bytes, per cent) of each ordinal in the region of a container."""
    data = scene.disk.files()[region_file(PATHS, pod["metadata"]["uid"], name)]
    return [(one.uuid, one.limit, one.cores) for one in region.read(data)]


async def inside(scene: Scene, engine: Engine, *claims: ClaimRef, request: str = "") -> Injected:
    """What a container gets that names these claims, or one request of them."""
    documents = [
        data for path, data in scene.disk.files().items() if path.parent == PATHS.cdi_folder
    ]
    devices = [one for claim in claims for one in await engine.prepare(claim)]
    wanted = [one for one in devices if not request or request in one.requests]
    return inject(documents, [cdi_id for one in wanted for cdi_id in one.cdi_ids])


def variables(got: Injected) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in got.env)


async def refused(engine: Engine, claim: ClaimRef) -> DragoonError:
    with pytest.raises(DragoonError) as caught:
        await engine.prepare(claim)
    assert not caught.value.retryable
    return caught.value
