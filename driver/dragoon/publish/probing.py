"""Whether the API server keeps device taints.

A server without the feature gate DRADeviceTaints (off up to 1.35) drops them without a word, and
what only a taint protects would be given away. So it is asked by a dry run, before the first
tainted device is published.
"""

import asyncio

from dragoon.kube.port import SLICES, Api, Object
from dragoon.publish import comparing
from dragoon.publish.comparing import Difference


def concerns_taints(difference: Difference) -> bool:
    """Whether a server took away or changed the taints of a device."""
    return difference.path.endswith(".taints")


class TaintSupport:
    """What is known about one API server. A yes holds until a write shows otherwise."""

    def __init__(self, api: Api, believed: float) -> None:
        """believed: for how many seconds a no holds; servers are upgraded."""
        self._api = api
        self._believed = believed
        self._kept: bool | None = None
        self._refuted_at = 0.0

    async def kept(self, slice_: Object) -> bool:
        """Whether this slice, which has tainted devices, would be stored with its taints.

        Nothing is stored. Raises what the API raises.
        """
        now = asyncio.get_running_loop().time()
        if self._kept is None or (not self._kept and now - self._refuted_at >= self._believed):
            stored = await self._api.create(SLICES, slice_, dry_run=True)
            found = comparing.differences(comparing.content(slice_), comparing.content(stored))
            self.learn(kept=not any(map(concerns_taints, found)))
        return bool(self._kept)

    def learn(self, *, kept: bool) -> None:
        """What the answer to a write showed."""
        self._kept = kept
        self._refuted_at = asyncio.get_running_loop().time()
