"""What may be published to which Kubernetes. Pure.

Fields that a server does not know are found by asking it (`probing`). What asking cannot show is
here: 1.36.0 and 1.36.1 give counters twice where a device can be given away several times
(kubernetes#139034). The API server's version stands for the scheduler's, which nobody can ask.
"""

import re
from dataclasses import dataclass
from typing import Final

_VERSION: Final = re.compile(r"v?([1-9]\d{0,3})\.(\d{1,4})\.(\d{1,4})", re.ASCII)

_OLDEST: Final = (1, 35, 0)
_WITH_COUNTERS: Final = (1, 36, 0)
_WITH_FORMS: Final = (1, 36, 2)
_WITHOUT_WARNING: Final = (1, 36, 4)


@dataclass(frozen=True, slots=True)
class Floor:
    """What a version allows.

    publishes: anything at all. forms: shared GPUs and MIG, where they are wanted. problem: why not
    everything, or what to be careful about; empty where nothing is to be said.
    """

    publishes: bool = True
    forms: bool = True
    problem: str = ""


def floor(version: str) -> Floor:
    """What may be published to a server that calls itself so (`gitVersion`).

    Vendors add to the number, `v1.36.2-gke.1`: what follows it is ignored. A version that is none
    gets whole GPUs only.
    """
    found = _VERSION.match(version)
    if found is None:
        problem = f"only whole GPUs: the server's version {version!r} cannot be read"
        return Floor(forms=False, problem=problem)
    number = (int(found[1]), int(found[2]), int(found[3]))
    told = "Kubernetes " + ".".join(map(str, number))
    if number < _OLDEST:
        return Floor(
            publishes=False,
            forms=False,
            problem=f"nothing is published: {told} is older than 1.35",
        )
    if number < _WITH_COUNTERS:
        return Floor(forms=False, problem=f"only whole GPUs, without taints: {told} has no more")
    if number < _WITH_FORMS:
        return Floor(
            forms=False,
            problem=f"only whole GPUs: {told} gives counters twice (kubernetes#139034); "
            "shares and MIG need 1.36.4",
        )
    if number < _WITHOUT_WARNING:
        return Floor(problem=f"{told} works with a warning: 1.36.4 or later is recommended")
    return Floor()
