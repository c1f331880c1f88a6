"""Why these devices, and why not: the funnel as data and as lines."""

from typing import Any

from dragoon.allocator import Allocated
from tests.unit.allocator.attempts import attempt, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    Raw,
    claim,
    counters,
    device,
    holding,
    request,
    slice_of,
    uses,
)

LOST = [{"key": "dragoon.dev/lost", "effect": "NoSchedule"}]
MEMORY = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
DOMAIN = f"{DRIVER}/nvlinkDomain"


def gpu(name: str, memory: str = "80Gi", **fields: Any) -> Raw:
    return device(name, capacity={"memory": {"value": memory}}, **fields)


SLICES = [
    slice_of(
        gpu("gpu-0", "24Gi"),
        gpu("gpu-1", taints=LOST),
        gpu("gpu-2"),
        gpu("gpu-3", nvlinkDomain="x"),
        gpu("gpu-4", nvlinkDomain="y"),
        gpu("gpu-5", nvlinkDomain="x"),
        gpu("gpu-6", "24Gi"),
    )
]


def test_each_step_tells_how_many_are_left_and_who_is_out_with_the_value() -> None:
    outcome = refusal(
        attempt(claim(request("g", 6, MEMORY)), slices=SLICES, held=[holding("gpu-2")])
    )
    (funnel,) = outcome.explanation.funnels
    steps = {step.name: (step.left, step.lost) for step in funnel.steps}
    assert funnel.total == 7
    assert steps["class gpu.dragoon.dev"] == (7, 0)
    assert steps["selectors of the request"] == (5, 2)
    assert steps["taints"] == (4, 1)
    assert steps["not in use"] == (3, 1)
    assert outcome.message == (
        "request g of claim default/c needs 6 devices, 7 are there before 'selectors of the "
        f"request' and 5 after; for example gpu-0: {MEMORY} is false: "
        f"device.capacity['{DRIVER}'].memory is 24Gi"
    )


def test_the_lines_of_a_refusal_name_losers_and_holders() -> None:
    outcome = refusal(
        attempt(claim(request("g", 6, MEMORY)), slices=SLICES, held=[holding("gpu-2")])
    )
    assert outcome.lines()[1:] == [
        "claim default/c, request g: 6 devices of class gpu.dragoon.dev",
        "  7 devices on node n",
        "  class gpu.dragoon.dev: 7 left",
        "  selectors of the request: 5 left, 2 out",
        f"    gpu-0, gpu-6: {MEMORY} is false: device.capacity['{DRIVER}'].memory is 24Gi",
        "  taints: 4 left, 1 out",
        "    gpu-1: taint dragoon.dev/lost:NoSchedule is not tolerated",
        "  not in use: 3 left, 1 out",
        "    gpu-2: held by claim default/other",
    ]


def test_the_lines_of_a_choice_say_which_and_why_not_those_before() -> None:
    outcome = attempt(claim(request(count=2), same=DOMAIN), slices=SLICES)
    assert isinstance(outcome, Allocated)
    assert outcome.lines()[-8:] == [
        "  chosen, first fit in the order of names: gpu-3, gpu-5",
        "    before them: gpu-0: has no attribute gpu.dragoon.dev/nvlinkDomain",
        "    before them: gpu-2: has no attribute gpu.dragoon.dev/nvlinkDomain",
        '    before them: gpu-4: gpu.dragoon.dev/nvlinkDomain is "y", not "x"',
        "  same gpu.dragoon.dev/nvlinkDomain for 2 devices:",
        '    "x": 2 devices (gpu-3, gpu-5)',
        '    "y": 1 device (gpu-4)',
        "    without it: 3 devices (gpu-0, gpu-2, gpu-6)",
    ]


def test_a_device_taken_by_another_request_of_the_pod_is_told() -> None:
    outcome = attempt(claim(request("x"), request("y")), slices=[slice_of(gpu("a"), gpu("b"))])
    assert isinstance(outcome, Allocated)
    assert "    before them: a: taken by request x of the same pod" in outcome.lines()


def test_more_losers_than_are_named_are_counted() -> None:
    slices = [slice_of(*(gpu(f"gpu-{i}", "24Gi") for i in range(8)))]
    lines = refusal(attempt(claim(request("g", 1, MEMORY)), slices=slices)).lines()
    assert lines[-1] == "    and 5 more"


def test_a_pool_that_is_being_updated_is_told_first() -> None:
    lines = refusal(attempt(claim(request()), slices=[slice_of(gpu("a"), count=3)])).lines()
    assert lines[1] == (
        "pool gpu.dragoon.dev/n/gpu is not used: being updated: generation 1 has 1 slices, expected 3"
    )


def test_a_selector_that_fails_shows_what_is_there() -> None:
    wish = claim(request("g", 1, f"device.attributes['{DRIVER}'].model == 'x'"))
    outcome = refusal(attempt(wish, slices=[slice_of(device("a", name_="x"))]))
    assert (
        f"    a: device.attributes['{DRIVER}'].model failed: no such key: model (there are: name_)"
        in (outcome.lines())
    )


def test_capacity_shares_and_counters_are_told_with_values_and_holders() -> None:
    def card(name: str, memory: str = "80Gi", **fields: Any) -> Raw:
        use = uses(f"card-{name}", memory=1)
        return gpu(name, memory, allowMultipleAllocations=True, consumesCounters=use, **fields)

    sets = [(f"card-{name}", {"memory": "1"}) for name in "abcd"]
    parts = [gpu("b-part", consumesCounters=uses("card-b", memory=1))]
    slices = [
        counters(*sets),
        slice_of(card("a"), card("b"), card("c", "40Gi"), card("d", taints=LOST), *parts, count=2),
    ]
    share = {"shareID": "00000000-0000-4000-8000-000000000001"}
    held = [
        holding("a", name="big", consumedCapacity={"memory": "50Gi"}, **share),
        holding("b-part", name="part"),
    ]
    wish = claim(request(capacity={"requests": {"memory": "48Gi"}}))
    assert refusal(attempt(wish, slices=slices, held=held)).lines()[1:] == [
        "claim default/c, request g: 1 device of class gpu.dragoon.dev",
        "  5 devices on node n",
        "  class gpu.dragoon.dev: 5 left",
        "  capacity: 4 left, 1 out",
        "    c: memory: 48Gi wanted, has 40Gi",
        "  taints: 3 left, 1 out",
        "    d: taint dragoon.dev/lost:NoSchedule is not tolerated",
        "  not in use: 2 left, 1 out",
        "    b-part: held by claim default/part",
        "  capacity left: 1 left, 1 out",
        "    a: memory: 48Gi wanted, 30Gi of 80Gi left, the rest held by claim default/big",
        "  counters left: 0 left, 1 out",
        "    b: counter memory of card-b: 1 wanted, 0 left, the rest held by claim default/part",
    ]


def test_an_unknown_class_is_a_step_that_leaves_nothing() -> None:
    outcome = refusal(attempt(claim(request(class_name="nope")), slices=SLICES))
    (funnel,) = outcome.explanation.funnels
    assert (funnel.steps[0].left, funnel.steps[0].losers[0].reason) == (
        0,
        "there is no DeviceClass nope",
    )


def test_what_does_not_fit_together_is_told_apart_from_what_does_not_fit_at_all() -> None:
    slices = [slice_of(gpu("a", only=1))]
    wish = claim(request("x"), request("y"))
    assert refusal(attempt(wish, slices=slices)).message == (
        "each request and each constraint can be met alone, but not all of them together"
    )
