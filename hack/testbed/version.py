"""Which Kubernetes the end-to-end tests run on."""

import os
from typing import Final

from realcluster.versions import DEFAULT_KUBERNETES

VARIABLE: Final = "DRAGOON_E2E_KUBERNETES"
"""Names another version than the default, such as 1.36.3."""


def chosen() -> str:
    return os.environ.get(VARIABLE, DEFAULT_KUBERNETES)
