"""Nodes that the planner takes for alike: its answers are those of each device by itself.

Every node has texts of its own in attributes, and selectors read them: with literals that are the
text of one node, on devices without it, and walking over all of a device.
"""

from random import Random
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.allocator.gang import GangPlan, NoRoom
from dragoon.allocator.gang.demand import wishes_of
from dragoon.allocator.gang.mix import KINDS, Demand
from dragoon.allocator.selection import selector
from dragoon.cel import EvaluationError, compile_selector, device_view
from tests.unit.allocator.gang.objects import (
    GROUP,
    claim,
    gang,
    gpus,
    members,
    node,
    planned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import DRIVER

_OWN = f"device.attributes['{DRIVER}']"
TEXTS = (
    f"has({_OWN}.nvlinkDomain)",
    f"'nvlinkDomain' in {_OWN}",
    f"{_OWN}.nvlinkDomain == 'n1-a'",
    f"{_OWN}.nvlinkDomain != 'n0-b'",
    f"{_OWN}.nvlinkDomain.startsWith('n1')",
    f"{_OWN}.?nvlinkDomain.orValue('') in ['n0-a', 'n2-b', '']",
    f"{_OWN}.?nvlinkDomain.orValue('n0-a').endsWith('a')",
    f"{_OWN}.uuid != 'uuid-1'",
    f"{_OWN}.uuid == 'uuid-0' || {_OWN}.nvlinkDomain == 'n2-a'",
    f"{_OWN}.exists(name, name == 'nvlinkDomain')",
    " && ".join([f"{_OWN}.nvlinkDomain.matches('^n[0-2]-(a|b)$')"] * 4),
    f"size({_OWN}) > 2",
    "true",
)


def selects(text: str, raw: dict[str, Any]) -> bool:
    """What CEL says of one device; False where it fails: the planner leaves that one alone."""
    try:
        return compile_selector(text).evaluate(device_view(DRIVER, raw))
    except EvaluationError:
        return False


def test_the_texts_are_of_all_kinds() -> None:
    asked = [selector(text) for text in TEXTS]
    kinds = {(one.is_cheap, one.program.reads is None) for one in asked}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(TEXTS), st.sampled_from(TEXTS))
def test_as_many_members_fit_as_there_are_devices_that_are_selected(
    seed: int, text: str, expected: str
) -> None:
    random = Random(seed)  # noqa: S311 - of cases, not of secrets
    groups = [random.choice("aab-") for _ in range(random.randrange(1, 4))]
    devices = {
        name: gpus(*(None if one == "-" else f"{name}-{one}" for one in groups))
        for name in ("n0", "n1", "n2", "n3")
    }
    wanted = wish(1, selectors=[{"cel": {"expression": text}}])
    room = sum(selects(text, one) for found in devices.values() for one in found)
    event(f"room for {'some' if room else 'none'}")
    usual = wish(1, selectors=[{"cel": {"expression": expected}}])
    known = snapshot(
        map(node, devices),
        [one for name, found in devices.items() for one in slices_of(name, found)],
        mix=(*(Demand(9, one) for one, _ in wishes_of({}, [claim("c", usual)])), *KINDS),
    )
    if room:
        assert isinstance(planned(known, gang(members(room, wanted))), GangPlan)
    assert isinstance(planned(known, gang(members(room + 1, wanted))), NoRoom)
    pairs = sum(
        sum(selects(text, one) and groups[at] == letter for at, one in enumerate(found)) // 2
        for found in devices.values()
        for letter in "ab"
    )
    two = wish(2, selectors=[{"cel": {"expression": text}}])
    if pairs:
        assert isinstance(planned(known, gang(members(pairs, two, same=GROUP))), GangPlan)
    assert isinstance(planned(known, gang(members(pairs + 1, two, same=GROUP))), NoRoom)
