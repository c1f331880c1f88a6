"""status.allocation as kube-scheduler writes it, and cases C42 and C04."""

from typing import Any

from dragoon.allocator import Allocated, Kind
from tests.unit.allocator.attempts import attempt, refusal
from tests.unit.allocator.objects import (
    DRIVER,
    GPU_CLASS,
    claim,
    class_of,
    device,
    node,
    opaque,
    request,
    slice_of,
)


def allocation(*args: Any, **kwargs: Any) -> dict[str, Any]:
    outcome = attempt(*args, **kwargs)
    assert isinstance(outcome, Allocated), outcome
    return outcome.allocations[0]


def test_a_whole_result_has_exactly_these_fields() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    wish = claim(request("gpu", tolerations=tolerations))
    assert allocation(wish, slices=[slice_of(device("gpu-0"))]) == {
        "devices": {
            "results": [
                {
                    "request": "gpu",
                    "driver": DRIVER,
                    "pool": "n/gpu",
                    "device": "gpu-0",
                    "tolerations": tolerations,
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
            ]
        },
    }


def config_of(wish: dict[str, Any], *classes: dict[str, Any]) -> list[dict[str, Any]]:
    slices = [slice_of(*map(device, "abc"))]
    found: list[dict[str, Any]] = allocation(wish, slices=slices, classes=classes)["devices"][
        "config"
    ]
    return found


def test_c42_class_configuration_comes_first_each_class_once_then_the_claims() -> None:
    one = class_of(name="one", config=[opaque("d", n=1), opaque("e", n=2)])
    two = class_of(name="two", config=[opaque("d", n=3)])
    wish = claim(
        request("x", class_name="one"),
        request("y", class_name="two"),
        request("z", class_name="one"),
        config=[{**opaque("d", n=4), "requests": ["y"]}, opaque("d", n=5)],
    )
    assert config_of(wish, one, two) == [
        {"source": "FromClass", "requests": ["x", "z"], **opaque("d", n=1)},
        {"source": "FromClass", "requests": ["x", "z"], **opaque("e", n=2)},
        {"source": "FromClass", "requests": ["y"], **opaque("d", n=3)},
        {"source": "FromClaim", "requests": ["y"], **opaque("d", n=4)},
        {"source": "FromClaim", **opaque("d", n=5)},
    ]


def test_c42_a_list_of_all_requests_is_left_out() -> None:
    one = class_of(name="one", config=[opaque("d", n=1)])
    wish = claim(
        request("x", class_name="one"),
        request("y", class_name="one"),
        config=[{**opaque("d", n=2), "requests": ["y", "x"]}],
    )
    assert config_of(wish, one) == [
        {"source": "FromClass", **opaque("d", n=1)},
        {"source": "FromClaim", **opaque("d", n=2)},
    ]


def test_configuration_for_requests_that_do_not_exist_is_dropped() -> None:
    wish = claim(request("x"), config=[{**opaque("d"), "requests": ["nope"]}, opaque("e")])
    assert config_of(wish, GPU_CLASS) == [{"source": "FromClaim", **opaque("e")}]


def test_a_device_available_everywhere_needs_no_node_selector() -> None:
    assert "nodeSelector" not in allocation(
        claim(request()), slices=[slice_of(device("a"), allNodes=True)]
    )


def test_a_device_that_binds_to_its_node_pins_the_claim() -> None:
    slices = [slice_of(device("a", bindsToNode=True), allNodes=True)]
    assert allocation(claim(request()), slices=slices)["nodeSelector"]["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    ]


def zone(*values: str, key: str = "zone") -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def test_selectors_of_shared_slices_are_merged_without_repetition() -> None:
    slices = [
        slice_of(
            device("a"),
            pool="a",
            name="s0",
            nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [zone("x", "y")]}]},
        ),
        slice_of(
            device("b"),
            pool="b",
            name="s1",
            nodeSelector={
                "nodeSelectorTerms": [{"matchExpressions": [zone("y", "x"), zone("1", key="rack")]}]
            },
        ),
    ]
    found = allocation(claim(request(count=2)), slices=slices, on=node(zone="x", rack="1"))
    assert found["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchExpressions": [zone("x", "y"), zone("1", key="rack")]}]
    }


def test_a_selector_of_several_terms_ends_the_attempt() -> None:
    terms = [{"matchExpressions": [zone("x")]}, {"matchExpressions": [zone("y")]}]
    slices = [slice_of(device("a"), nodeSelector={"nodeSelectorTerms": terms})]
    outcome = refusal(attempt(claim(request()), slices=slices, on=node(zone="x")))
    assert outcome.kind is Kind.FAILED
    assert "a node selector with 2 terms" in outcome.message


def test_c04_a_device_without_memory_is_not_matched_by_a_guarded_memory_selector() -> None:
    slices = [slice_of(device("gb10"))]
    guarded = f"device.capacity['{DRIVER}'].?memory.orValue(quantity('0')).compareTo(quantity('40Gi')) >= 0"
    outcome = attempt(claim(request("g", 1, guarded)), slices=slices)
    assert not isinstance(outcome, Allocated)
    assert isinstance(attempt(claim(request()), slices=slices), Allocated)
