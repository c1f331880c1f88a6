"""The manifests of docs/manifests, and how they are tried without hardware or a registry."""

from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api import names
from realcluster.images import BUSYBOX
from testbed.objects import SLEEP

Object = dict[str, Any]

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs/manifests"
SIMULATED: Final = {
    names.CLASS_GPU: names.CLASS_SIMULATED,
    names.CLASS_MIG: "sim-mig.dragoon.dev",
    names.CLASS_SHARED: "sim-shared.dragoon.dev",
}
"""Each class of hardware, and the one of simulated GPUs of the same form
(deviceclasses/samples)."""


_IMAGE: Final = {"image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", SLEEP]}


def read(name: str) -> list[Object]:
    """The objects of a file as they are published."""
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text("utf-8")) if one]


def tried(objects: list[Object], namespace: str) -> list[Object]:
    """The same objects in a namespace, for simulated GPUs, with an image that is there.

    Only the class, the image and its command change: containers sleep until they are ended.
    """
    return [
        _tried({**one, "metadata": {**one["metadata"], "namespace": namespace}}) for one in objects
    ]


def _tried(value: Any) -> Any:
    if isinstance(value, list):
        return [_tried(one) for one in value]
    if not isinstance(value, dict):
        return value
    return dict(_field(key, one) for key, one in value.items())


def _field(key: str, value: Any) -> tuple[str, Any]:
    if key == "deviceClassName":
        return key, SIMULATED[value]
    if key == "containers":
        return key, [{**_tried(one), **_IMAGE} for one in value]
    return key, _tried(value)
