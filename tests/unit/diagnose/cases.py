"""The manifests of the case log, in the product's own names, and shortcuts for lint tests."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon.diagnose.documents import read_text
from dragoon.diagnose.linting import Finding, lint
from dragoon.diagnose.manifests import Manifests
from dragoon.diagnose.snapshot import ClusterSnapshot

Raw = dict[str, Any]

_REPOSITORY = Path(__file__).parents[3]
_FOLDERS = [root / "shared/cases/manifests" for root in (_REPOSITORY, _REPOSITORY.parent)]
FOLDER = next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])

needs_case_files = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no case files beside this checkout"
)

# The case log: names in the inputs stand for the product's own.
_OWN_NAMES = (
    ("gpu-share.nvidia.com", "shared.dragoon.dev"),
    ("mig.nvidia.com", "mig.dragoon.dev"),
    ("gpu.nvidia.com", "gpu.dragoon.dev"),
    ("'nvidia.com'", "'dragoon.dev'"),
    ("nvlinkGroup", "nvlinkDomain"),
    ("resource.nvidia.com/v1beta1", "gpu.dragoon.dev/v1alpha1"),
    ("MigDeviceConfig", "MigConfig"),
    # Our configs have no strategy: a node's forms say how a GPU is shared.
    (", sharing: {strategy: TimeSlicing}}", "}"),
)


def case_text(name: str) -> str:
    """The text of a case file such as m06, in our names."""
    (file,) = FOLDER.glob(f"{name}-*.yaml")
    text = file.read_text()
    for theirs, ours in _OWN_NAMES:
        text = text.replace(theirs, ours)
    return text


def case(*names: str) -> Manifests:
    """All objects of these case files."""
    return Manifests.of(one for name in names for one in read_text(name, case_text(name)))


def manifests(*objects: Raw | str) -> Manifests:
    """Objects as if they stood in one file."""
    texts = [one if isinstance(one, str) else yaml.safe_dump(one) for one in objects]
    return Manifests.of(read_text("test.yaml", "\n---\n".join(texts)))


def findings(*objects: Raw | str, snapshot: ClusterSnapshot | None = None) -> tuple[Finding, ...]:
    return lint(manifests(*objects), snapshot)


def codes(found: tuple[Finding, ...]) -> list[str]:
    return [one.code for one in found]


def only(found: tuple[Finding, ...]) -> Finding:
    """The one finding that there is."""
    assert len(found) == 1, [(one.code, one.path, one.found) for one in found]
    return found[0]


def claim(*requests: Raw, name: str = "c", **devices: Any) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def exactly(name: str = "gpu", class_name: str = "gpu.dragoon.dev", **fields: Any) -> Raw:
    return {"name": name, "exactly": {"deviceClassName": class_name, **fields}}


def selecting(text: str, class_name: str = "gpu.dragoon.dev") -> Raw:
    """A claim with one selector."""
    return claim(exactly(class_name=class_name, selectors=[{"cel": {"expression": text}}]))


def template(*requests: Raw, name: str = "t", namespace: str = "default") -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def pod(claims: list[Raw], uses: list[Raw], name: str = "p") -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceClaims": claims,
            "containers": [{"name": "main", "image": "none", "resources": {"claims": uses}}],
        },
    }


def class_(name: str, *texts: str, **spec: Any) -> Raw:
    selectors = [{"cel": {"expression": text}} for text in texts]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def gpu(name: str, product: str, memory: str, **attributes: Any) -> Raw:
    """A whole GPU as it is published."""
    kinds = {str: "string", int: "int", bool: "bool"}
    described: Raw = {"type": {"string": "gpu"}, "productName": {"string": product}}
    described |= {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    return {"name": name, "attributes": described, "capacity": {"memory": {"value": memory}}}


def slice_(*devices: Raw, node: str = "n", driver: str = "gpu.dragoon.dev", **pool: Any) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{pool.get('generation', 1)}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": f"{node}/gpu", "generation": 1, "resourceSliceCount": 1, **pool},
            "devices": list(devices),
        },
    }


GPU_CLASS = class_(
    "gpu.dragoon.dev",
    "device.driver == 'gpu.dragoon.dev' && "
    "'gpu' == device.attributes['gpu.dragoon.dev'].?type.orValue('')",
)
H100 = gpu("gpu-0000-65-00-0", "NVIDIA H100 80GB HBM3", "81559Mi")
