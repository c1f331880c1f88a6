"""Order, backtracking and the limits of the search."""

import pytest

from dragoon.allocator import Kind, allocate_on, snapshot
from dragoon.errors import UnsupportedError
from tests.unit.allocator.attempts import attempt, chosen, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    claim,
    class_of,
    device,
    holding,
    node,
    request,
    slice_of,
)

DOMAIN = f"{DRIVER}/nvlinkDomain"


def test_the_first_devices_in_the_order_of_pool_slice_and_list_win() -> None:
    slices = [
        slice_of(device("z"), pool="b", name="s9"),
        slice_of(device("d"), device("c"), pool="a", name="s2", count=2),
        slice_of(device("e"), pool="a", name="s1", count=2),
    ]
    assert chosen(attempt(claim(request(count=3)), slices=slices)) == [["e", "d", "c"]]


def test_claims_and_requests_are_served_in_order() -> None:
    slices = [slice_of(*map(device, "abcd"))]
    first, second = claim(request("x"), request("y"), name="one"), claim(request(), name="two")
    assert chosen(attempt(first, second, slices=slices)) == [["a", "b"], ["c"]]


def test_an_earlier_request_gives_way_where_a_later_one_has_no_choice() -> None:
    slices = [slice_of(device("a", kind="big"), device("b", kind="small"))]
    wish = claim(request("any"), request("big", 1, f"device.attributes['{DRIVER}'].kind == 'big'"))
    assert chosen(attempt(wish, slices=slices)) == [["b", "a"]]


def test_an_earlier_claim_gives_way_too() -> None:
    slices = [slice_of(device("a", kind="big"), device("b", kind="small"))]
    big = claim(request("g", 1, f"device.attributes['{DRIVER}'].kind == 'big'"), name="big")
    assert chosen(attempt(claim(request()), big, slices=slices)) == [["b"], ["a"]]


def test_within_a_request_devices_come_in_increasing_order() -> None:
    slices = [
        slice_of(
            device("a", nvlinkDomain="x"),
            device("b", nvlinkDomain="y"),
            device("c", nvlinkDomain="x"),
            device("d", nvlinkDomain="y"),
        )
    ]
    assert chosen(attempt(claim(request(count=2), same=DOMAIN), slices=slices)) == [["a", "c"]]


def test_devices_in_use_are_left_alone() -> None:
    slices = [slice_of(*map(device, "abc"))]
    outcome = attempt(claim(request(count=2)), slices=slices, held=[holding("b")])
    assert chosen(outcome) == [["a", "c"]]


def test_a_device_held_with_admin_access_only_is_free() -> None:
    slices = [slice_of(device("a"))]
    assert chosen(
        attempt(claim(request()), slices=slices, held=[holding("a", adminAccess=True)])
    ) == [["a"]]


def test_a_device_of_another_pool_with_the_same_name_is_free() -> None:
    slices = [slice_of(device("a"))]
    assert chosen(attempt(claim(request()), slices=slices, held=[holding("a", pool="m/gpu")])) == [
        ["a"]
    ]


def test_class_and_request_selectors_must_all_match() -> None:
    classes = [class_of(f"device.driver == '{DRIVER}'", f"device.attributes['{DRIVER}'].n > 0")]
    slices = [slice_of(device("a", n=0), device("b", n=1), device("c", n=2))]
    wish = claim(request("g", 1, f"device.attributes['{DRIVER}'].n > 1"))
    assert chosen(attempt(wish, slices=slices, classes=classes)) == [["c"]]


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_tainted_device_is_skipped_unless_tolerated(effect: str) -> None:
    taint = {"key": "dragoon.dev/lost", "value": "yes", "effect": effect}
    slices = [slice_of(device("a", taints=[taint]), device("b"))]
    assert chosen(attempt(claim(request()), slices=slices)) == [["b"]]
    tolerations = [
        [{"key": "dragoon.dev/lost", "operator": "Exists"}],
        [{"key": "dragoon.dev/lost", "operator": "Equal", "value": "yes", "effect": effect}],
        [{"key": "dragoon.dev/lost", "value": "yes"}],
        [{"operator": "Exists"}],
    ]
    for one in tolerations:
        assert chosen(attempt(claim(request(tolerations=one)), slices=slices)) == [["a"]]
    for wrong in (
        {"key": "other", "operator": "Exists"},
        {"key": "dragoon.dev/lost", "value": "no"},
        {"operator": "Exists", "effect": "None"},
    ):
        assert chosen(attempt(claim(request(tolerations=[wrong])), slices=slices)) == [["b"]]


@pytest.mark.parametrize("effect", ["None", "Unknown"])
def test_taints_without_a_known_effect_do_not_count(effect: str) -> None:
    slices = [slice_of(device("a", taints=[{"key": "k", "effect": effect}]))]
    assert chosen(attempt(claim(request()), slices=slices)) == [["a"]]


def test_more_than_32_devices_in_a_claim_is_an_error_whatever_there_is() -> None:
    slices = [slice_of(*(device(f"d{i:02}") for i in range(64)))]
    outcome = refusal(attempt(claim(request("a", 20), request("b", 13)), slices=slices))
    assert outcome.kind is Kind.FAILED
    assert "asks for 33 devices, a claim can have 32" in outcome.message
    assert chosen(attempt(claim(request(count=32)), slices=slices))[0][-1] == "d31"


def test_a_failing_selector_ends_the_attempt_only_when_the_search_comes_to_it() -> None:
    """C38: an expression that fails on one device is reported with that device's name."""
    selector = f"device.attributes['{DRIVER}'].model == 'x'"
    good, bad = device("a", model="x"), device("b")
    assert chosen(attempt(claim(request("g", 1, selector)), slices=[slice_of(good, bad)])) == [
        ["a"]
    ]
    outcome = refusal(attempt(claim(request("g", 1, selector)), slices=[slice_of(bad, good)]))
    assert outcome.kind is Kind.FAILED
    assert "selector 0 on device gpu.dragoon.dev/n/gpu/b: no such key: model" in outcome.message


def test_a_device_in_use_is_skipped_before_its_selector_can_fail() -> None:
    selector = f"device.attributes['{DRIVER}'].model == 'x'"
    slices = [slice_of(device("a"), device("b", model="x"))]
    wish = claim(request("g", 1, selector))
    assert chosen(attempt(wish, slices=slices, held=[holding("a")])) == [["b"]]


def test_a_selector_that_does_not_compile_ends_the_attempt() -> None:
    outcome = refusal(
        attempt(claim(request("g", 1, "device.nope")), slices=[slice_of(device("a"))])
    )
    assert outcome.kind is Kind.FAILED
    assert (
        "claim default/c, request g: selector 0: CEL expression, line 1, column 1"
        in outcome.message
    )


def test_an_unknown_class_is_named() -> None:
    outcome = refusal(attempt(claim(request(class_name="nope")), slices=[slice_of(device("a"))]))
    assert outcome.kind is Kind.FAILED
    assert "there is no DeviceClass nope (known are gpu.dragoon.dev)" in outcome.message


def test_a_bounded_search_says_that_it_stopped_not_that_nothing_fits() -> None:
    devices = [device(f"d{i:02}", nvlinkDomain=f"x{i % 2}") for i in range(30)]
    cluster = snapshot(classes=[GPU_CLASS], slices=[slice_of(*devices)], allocated_claims=[])
    wish = claim(request(count=16), same=DOMAIN)
    outcome = refusal(allocate_on(cluster, [wish], node(), attempts=1000))
    assert outcome.kind is Kind.STOPPED


@pytest.mark.parametrize(("claims", "devices"), [(16, 32), (110, 1)])
def test_a_pod_may_have_many_claims(claims: int, devices: int) -> None:
    slices = [slice_of(*(device(f"d{i:03}") for i in range(claims * devices)))]
    pod = [claim(request(count=devices), name=f"c{i}") for i in range(claims)]
    found = chosen(attempt(*pod, slices=slices))
    assert sum(map(len, found)) == claims * devices


def test_a_pod_with_more_than_can_be_searched_is_refused() -> None:
    pod = [claim(request(count=32), name=f"c{i}") for i in range(20)]
    with pytest.raises(UnsupportedError, match="Dragoon does not search 720 levels for one pod"):
        attempt(*pod, slices=[slice_of(device("a"))])
