"""Which Kubernetes the end-to-end tests run on."""

import os
from typing import Final

from realcluster.versions import DEFAULT_KUBERNETES, parse

VARIABLE: Final = "DRAGOON_E2E_KUBERNETES"
"""Names another version than the default, such as 1.36.3."""


def chosen() -> str:
    return os.environ.get(VARIABLE, DEFAULT_KUBERNETES)


def at_least(least: str) -> bool:
    """Whether it is this version, such as 1.37.0, or a later one."""
    return parse(chosen()) >= parse(least)
