"""A label on the Node of a running plugin counts at once: no restart, no wait for the next look."""

import time
from functools import partial

import pytest

from dragoon.api.names import LABEL_GANG_ONLY, TAINT_GANG_ONLY
from testbed.bed import Bed
from testbed.waiting import settles

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_ROUNDS = 3
_WITHOUT_WATCH = 240
"""Seconds. A plugin that only looks every minute sees one change a minute: six cost it five."""


def _tainted(bed: Bed, node: str) -> dict[str, bool]:
    """Of each whole GPU, whether it is kept for gangs."""
    return {
        name: any(taint["key"] == TAINT_GANG_ONLY for taint in device.get("taints") or ())
        for name, device in bed.whole_gpus(node).items()
    }


def test_a_label_that_is_set_and_taken_away_is_seen_each_time(bed: Bed) -> None:
    node = max(bed.plugins)
    plugin, before = bed.plugins[node].pid, _tainted(bed, node)
    assert set(before.values()) == {False}
    began = time.monotonic()
    try:
        for _ in range(_ROUNDS):
            bed.kubectl("label", "node", node, f"{LABEL_GANG_ONLY}=true")
            settles(partial(_tainted, bed, node), dict.fromkeys(before, True))
            bed.kubectl("label", "node", node, f"{LABEL_GANG_ONLY}-")
            settles(partial(_tainted, bed, node), before)
    finally:
        bed.kubectl("label", "node", node, f"{LABEL_GANG_ONLY}-")
    took = time.monotonic() - began
    bed.figures.append(
        f"a label of a Node in its slices: {took / (2 * _ROUNDS):.2f} s with kubectl"
    )
    assert took < _WITHOUT_WATCH
    assert bed.plugins[node].pid == plugin
