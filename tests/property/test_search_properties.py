"""The search against a brute force that knows nothing of it, and the verifier against both."""

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from dragoon.allocator import Allocated, Answer, allocate, lines, verify
from tests.property.clusters import SAFE_WISHES, Scene, attribute, scenes
from tests.unit.allocator.objects import CLASS, DRIVER, Raw

_WISHES = {wish.text: wish for wish in SAFE_WISHES}
_Place = tuple[str, str, Raw]
"""Driver, pool and raw device."""


def search(scene: Scene) -> Answer:
    return allocate(
        scene.claims,
        classes=scene.classes,
        slices=scene.slices,
        allocated_claims=scene.held,
        node=scene.node,
    )


def usable(scene: Scene) -> list[_Place]:
    """The free devices of the node in the order of the search."""
    held = {
        (result["driver"], result["pool"], result["device"])
        for claim in scene.held
        for result in claim["status"]["allocation"]["devices"]["results"]
        if not result.get("adminAccess")
    }
    ordered = sorted(
        scene.slices,
        key=lambda s: (s["spec"]["driver"], s["spec"]["pool"]["name"], s["metadata"]["name"]),
    )
    return [
        (one["spec"]["driver"], one["spec"]["pool"]["name"], device)
        for one in ordered
        if is_here(one["spec"])
        for device in one["spec"]["devices"]
        if (one["spec"]["driver"], one["spec"]["pool"]["name"], device["name"]) not in held
    ]


def is_here(spec: Raw) -> bool:
    """Whether a slice is for node `n` with the label zone=z."""
    if "nodeSelector" in spec:
        (term,) = spec["nodeSelector"]["nodeSelectorTerms"]
        (requirement,) = term["matchExpressions"]
        return bool(("z" in requirement["values"]) == (requirement["operator"] == "In"))
    return spec.get("nodeName") == "n" or bool(spec.get("allNodes"))


def fits(place: _Place, request: Raw) -> bool:
    driver, _, device = place
    exactly = request["exactly"]
    if exactly["deviceClassName"] == CLASS and driver != DRIVER:
        return False
    texts = [one["cel"]["expression"] for one in exactly.get("selectors", [])]
    return all(_WISHES[text].accepts(driver, device) for text in texts) and all(
        taint["effect"] == "None"
        or any(tolerates(t, taint) for t in exactly.get("tolerations", []))
        for taint in device.get("taints", [])
    )


def tolerates(toleration: Raw, taint: Raw) -> bool:
    return (
        toleration.get("effect") in {None, taint["effect"]}
        and toleration.get("key") in {None, taint["key"]}
        and (toleration["operator"] == "Exists" or toleration.get("value") == taint.get("value"))
    )


def value_of(place: _Place, name: str) -> Any:
    driver, _, device = place
    domain, _, short = name.partition("/")
    found = device["attributes"].get(name)
    if found is None and domain == driver:
        found = device["attributes"].get(short)
    return None if found is None else next(iter(found.items()))


def is_solution(scene: Scene, picks: list[tuple[int, Raw, tuple[_Place, ...]]]) -> bool:
    """Whether no device is taken twice and every constraint holds."""
    taken = [(place[0], place[1], place[2]["name"]) for _, _, places in picks for place in places]
    if len(set(taken)) < len(taken):
        return False
    for number, claim in enumerate(scene.claims):
        for constraint in claim["spec"]["devices"]["constraints"]:
            values = {
                value_of(place, constraint["matchAttribute"])
                for index, request, places in picks
                if index == number
                and request["name"] in constraint.get("requests", [request["name"]])
                for place in places
            }
            if len(values) > 1 or None in values:
                return False
    return True


def solutions(scene: Scene) -> Iterator[list[list[str]]]:
    """All solutions in the order of the search, as pool/device names per claim."""
    places = usable(scene)
    wanted = [
        (number, request)
        for number, claim in enumerate(scene.claims)
        for request in claim["spec"]["devices"]["requests"]
    ]
    choices = (
        itertools.combinations(
            [place for place in places if fits(place, request)], request["exactly"]["count"]
        )
        for _, request in wanted
    )
    for choice in itertools.product(*choices):
        picks = [(*wish, chosen) for wish, chosen in zip(wanted, choice, strict=True)]
        if is_solution(scene, picks):
            yield [
                [
                    f"{p[1]}/{p[2]['name']}"
                    for index, _, chosen in picks
                    if index == n
                    for p in chosen
                ]
                for n in range(len(scene.claims))
            ]


@settings(max_examples=200, deadline=None)
@given(scenes(risky=False))
def test_search_finds_the_first_solution_that_brute_force_finds(scene: Scene) -> None:
    outcome = search(scene)
    expected = next(solutions(scene), None)
    if not isinstance(outcome, Allocated):
        assert expected is None, outcome.message
        return
    found = [
        [f"{result['pool']}/{result['device']}" for result in allocation["devices"]["results"]]
        for allocation in outcome.allocations
    ]
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(scenes(risky=True))
def test_verifier_accepts_whatever_search_returns(scene: Scene) -> None:
    outcome = search(scene)
    assert lines(outcome.explanation) or not scene.claims
    if isinstance(outcome, Allocated):
        assert not verify(
            scene.claims,
            outcome.allocations,
            classes=scene.classes,
            slices=scene.slices,
            allocated_claims=scene.held,
            node=scene.node,
        )


@settings(max_examples=100, deadline=None)
@given(scenes(risky=False))
def test_a_refusal_for_one_request_is_true_without_the_others(scene: Scene) -> None:
    """Whoever has too few devices after its steps cannot be served even alone."""
    outcome = search(scene)
    places = usable(scene)
    requests = [r for claim in scene.claims for r in claim["spec"]["devices"]["requests"]]
    for funnel, request in zip(outcome.explanation.funnels, requests, strict=True):
        assert len(funnel.left) == sum(fits(place, request) for place in places)
        assert funnel.total == funnel.steps[0].left + funnel.steps[0].lost
        assert funnel.steps[-1].left == len(funnel.left)


def test_the_menu_of_selectors_reads_what_it_says() -> None:
    raw = {"attributes": {"a": {"string": "x"}, "b": {"int": 1}}}
    assert [wish.accepts(DRIVER, raw) for wish in SAFE_WISHES] == [True, False, True, True, True]
    assert attribute(DRIVER, raw, "nope") is None
