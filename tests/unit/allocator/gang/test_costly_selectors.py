"""What selectors may cost: a plan ends in time, and costs nobody for what others have written."""

from typing import Any

from dragoon.allocator.gang import GangPlan, SearchStopped
from dragoon.allocator.gang.demand import mix_of, wishes_of
from dragoon.allocator.gang.model import Budget
from dragoon.allocator.gang.planning import plan
from dragoon.allocator.gang.valuing import Valuation
from dragoon.allocator.selection import selector
from dragoon.cel import COST_LIMIT
from tests.unit.allocator.gang.objects import (
    claim,
    gang,
    gpus,
    member,
    node,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw

_DIGITS = "[1,2,3,4,5,6,7,8,9,10]"
_UUID = f"device.attributes['{DRIVER}'].uuid"


def costly(text: str, depth: int = 3) -> str:
    """An expression that is as true as the text, for a thousand times its cost."""
    for level in range(depth):
        text = f"{_DIGITS}.all(x{level}, {text})"
    return text


def asking(expression: str) -> Raw:
    return wish(selectors=[{"cel": {"expression": expression}}])


def test_a_plan_stops_where_its_selectors_cost_too_much_and_the_next_goes_on_from_there() -> None:
    last = costly(f"{_UUID} == 'uuid-5'")
    each = selector(last).program.estimated_cost
    assert 1_000 < each < COST_LIMIT
    cluster = snapshot([node("n1")], slices_of("n1", gpus(*"aabbcc")))
    wanted = gang([member("w", claim("c", asking(last)))])
    # The rest is for the selectors of the class.
    budget = Budget(selectors=4 * each + each // 2)
    found = plan(cluster, wanted, budget)
    assert isinstance(found, SearchStopped)
    assert f"found a cost of more than {budget.selectors} over all devices" in found.message
    assert selector(last).evaluations == 4
    assert isinstance(plan(cluster, wanted, budget), GangPlan)
    assert selector(last).evaluations == 6


def test_selectors_that_fail_are_not_evaluated_anew_by_each_plan() -> None:
    failing = costly(f"device.attributes['{DRIVER}'].missing == {_UUID}")
    cluster = snapshot([node("n1")], slices_of("n1", gpus(*"aabb")))
    for _ in range(3):
        plan(cluster, gang([member("w", claim("c", asking(failing)))]))
    assert selector(failing).evaluations == 4


def test_what_others_wish_at_a_high_cost_is_not_looked_at() -> None:
    cheap, dear = f"{_UUID[:-4]}type == 'gpu'", costly(f"{_UUID[:-4]}type == 'gpu'", depth=2)
    claims = [claim(str(number), asking(text)) for number, text in enumerate((cheap, dear))]
    wishes = [one for raw in claims for one in wishes_of({}, [raw])]
    mix = mix_of(dict.fromkeys(wishes, 1))
    classes: Any = snapshot([], []).cluster.classes
    texts = Valuation(mix, classes).texts
    assert cheap in texts
    assert dear not in texts


def test_what_others_wish_is_not_paid_for_by_the_gang_that_is_planned() -> None:
    index = f"device.attributes['{DRIVER}'].index < 99"
    wishes = wishes_of({}, [claim("other", asking(index))])
    cards = [
        {**one, "attributes": {**one["attributes"], "index": {"int": number}}}
        for number, one in enumerate(gpus(*"aabb"))
    ]
    cluster = snapshot([node("n1")], slices_of("n1", cards), mix=mix_of(dict.fromkeys(wishes, 1)))
    of_class = sum(
        selector(text).program.estimated_cost for text in cluster.cluster.classes["whole"].selectors
    )
    wanted = gang([member("w", claim("c", wish()))])
    selector.cache_clear()
    assert isinstance(plan(cluster, wanted, Budget(selectors=of_class)), GangPlan)
    assert selector(index).evaluations == 4
