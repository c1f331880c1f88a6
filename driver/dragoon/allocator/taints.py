"""Taints that keep a device from being allocated.

Source: `structured` of k8s.io/dynamic-resource-allocation 0.37.2.
"""

from collections.abc import Iterable

from dragoon.allocator.model import Request, Taint
from dragoon.api.names import KEEPS_OFF


def preventing(taints: Iterable[Taint], request: Request) -> Taint | None:
    """The first taint that the request does not tolerate; None and unknown effects are ignored."""
    for taint in taints:
        if taint.effect in KEEPS_OFF and not any(
            toleration.tolerates(taint) for toleration in request.tolerations
        ):
            return taint
    return None
