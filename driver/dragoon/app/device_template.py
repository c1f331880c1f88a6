"""Slices as a template: what a node of the same kind would publish, before there is one. Pure.

For autoscalers that think of nodes before they are there. What only one card has is left out, and
so is what happens to be wrong with one; the rest is as it would be published.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dragoon.publish import attributes

_OF_ONE_CARD: Final = frozenset(
    (attributes.UUID, attributes.PARENT_UUID, attributes.SIMULATED, attributes.FABRIC_CLIQUE)
)
"""Attributes that no other node has. Which fabric clique a new node joins is not known either."""

Object = Mapping[str, Any]


def as_template(slices: Iterable[Object], node: str) -> list[Object]:
    """The slices as a node of this name would have them.

    Names of pools begin with the name of their node; a slice has the name of its pool and number.
    """
    found: list[Object] = []
    for number, one in enumerate(slices):
        spec = one["spec"]
        pool = spec["pool"]
        part = pool["name"].rpartition("/")[2]
        found.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-{part}-{number}"},
                "spec": {
                    **spec,
                    "nodeName": node,
                    "pool": {**pool, "name": f"{node}/{part}", "generation": 1},
                    **({"devices": _plain(spec["devices"])} if spec.get("devices") else {}),
                },
            }
        )
    return found


def _plain(devices: Iterable[Object]) -> list[Object]:
    return [
        {
            **{name: value for name, value in one.items() if name != "taints"},
            "attributes": {
                name: value
                for name, value in one.get("attributes", {}).items()
                if name not in _OF_ONE_CARD
            },
        }
        for one in devices
    ]
