"""Wait for a condition, with a deadline and a reason to give up early."""

import time
from collections.abc import Callable

from realcluster.failure import ClusterError

_PAUSE = 0.1


def wait_for(
    what: str,
    condition: Callable[[], bool],
    *,
    timeout: float = 300.0,
    give_up: Callable[[], str | None] = lambda: None,
) -> None:
    """Return when the condition holds; fail at the deadline or when `give_up` has a reason."""
    deadline = time.monotonic() + timeout
    while not condition():
        reason = give_up()
        if reason is not None:
            raise ClusterError(f"waiting for {what}: {reason}")
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {timeout:.0f} s for {what}")
        time.sleep(_PAUSE)
