"""The Kubernetes objects in the blocks, those of other projects taken apart."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from tests.docs.blocks import Block, blocks

Object = dict[str, Any]

_OURS: Final = frozenset(
    ("v1", "apps/v1", "batch/v1", "resource.k8s.io/v1", "dragoon.dev/v1alpha1")
)
"""What an API server with Dragoon's CRD knows by itself."""


_PATCH: Final = "podSpecPatch"
_BESIDE: Final = frozenset((_PATCH, "minReplicas", "maxReplicas"))
"""What others write beside the fields of a pod: KServe its numbers, Argo the patch itself."""


def documents(block: Block) -> list[Object]:
    """The objects of a block."""
    return [one for one in yaml.safe_load_all(block.text) if one]


def plain() -> list[Block]:
    """Blocks with objects that an API server is to take as they are."""
    return [
        one
        for one in blocks()
        if one.kind == ("yaml",) or (one.language == "yaml" and "=" in one.kind[1])
    ]


def of(words: str) -> list[Block]:
    """Blocks of just this kind."""
    return [one for one in blocks() if " ".join(one.kind) == words]


def known(block: Block) -> list[Object]:
    """Those objects of a block that an API server knows, and pods for what is in the others."""
    found: list[Object] = []
    for number, one in enumerate(documents(block)):
        if one.get("apiVersion") in _OURS:
            found.append(one)
        else:
            found += _pods(one, f"inside-{number}")
    return found


def _pods(value: Any, name: str) -> Iterator[Object]:
    """A pod for each pod template inside of a value, wherever it is."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _pods(one, f"{name}-{number}")
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get(_PATCH), str):  # Argo: the part of a pod that a template adds, as text
        value = {**value, _PATCH: yaml.safe_load(value[_PATCH])}
    if isinstance(value.get("containers"), list):
        spec = {field: one for field, one in value.items() if field not in _BESIDE}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return
    metadata = value.get("metadata") or {}
    for position, (key, one) in enumerate(value.items()):
        for pod in _pods(one, f"{name}-{position}"):
            more = metadata if key == "spec" else {}
            described = {k: v for k, v in more.items() if k in {"labels", "annotations"}}
            yield {**pod, "metadata": {**described, **pod["metadata"]}}
