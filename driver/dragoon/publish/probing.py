"""Whether the API server keeps what our devices depend on.

A server drops fields without a word while their feature gate is off. Without
taints, what only a taint protects would be given away; without counters or the fields of devices
that are given away several times, one card would go to two claims. So the server is asked by a dry
run, before the first slice with such fields is published.
"""

import asyncio
import enum
import re
from collections.abc import Sequence
from typing import Final

import structlog

from dragoon.errors import ApiInvalidError
from dragoon.kube.port import SLICES, Api, Object
from dragoon.publish import comparing
from dragoon.publish.comparing import Difference

log = structlog.get_logger(__name__)


class Feature(enum.Enum):
    """What a server keeps or drops as one: taints (off up to 1.35), and what keeps forms apart."""

    TAINTS = "taints"
    FORMS = "forms"


_FIELDS: Final = {
    Feature.TAINTS: {"taints"},
    Feature.FORMS: {
        "sharedCounters",
        "consumesCounters",
        "allowMultipleAllocations",
        "requestPolicy",
    },
}
_STEP: Final = re.compile(r"\.(\w+)")


def concerned(difference: Difference) -> Feature | None:
    """What is lost where a server took away or changed this; None where we can live with it."""
    steps = set(_STEP.findall(f".{difference.path}"))
    return next((feature for feature, fields in _FIELDS.items() if fields & steps), None)


class Support:
    """What is known about one API server. A yes holds until a write shows otherwise."""

    def __init__(self, api: Api, believed: float) -> None:
        """believed: for how many seconds a no holds; servers are upgraded."""
        self._api = api
        self._believed = believed
        self._kept: dict[Feature, bool] = {}
        self._refuted_at: dict[Feature, float] = {}

    async def kept(self, feature: Feature, slices: Sequence[Object]) -> bool:
        """Whether these slices, which depend on the feature, would be stored as they are.

        Nothing is stored. A server that refuses a slice keeps nothing of it. Raises what the API
        raises otherwise.
        """
        now = asyncio.get_running_loop().time()
        known = self._kept.get(feature)
        if known is None or (not known and now - self._refuted_at[feature] >= self._believed):
            self.learn(feature, kept=await self._ask(feature, slices))
        return self._kept[feature]

    def learn(self, feature: Feature, *, kept: bool) -> None:
        """What the answer to a write showed."""
        self._kept[feature] = kept
        self._refuted_at[feature] = asyncio.get_running_loop().time()

    async def _ask(self, feature: Feature, slices: Sequence[Object]) -> bool:
        for slice_ in slices:
            try:
                stored = await self._api.create(SLICES, slice_, dry_run=True)
            except ApiInvalidError as error:
                log.warning("a slice would be refused", depends_on=feature.value, error=str(error))
                return False
            found = comparing.differences(comparing.content(slice_), comparing.content(stored))
            if feature in map(concerned, found):
                return False
        return True
