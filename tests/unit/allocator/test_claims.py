"""Wrong and unsupported claims are refused, naming claim and field (case C40)."""

from typing import Any

import pytest

from dragoon.allocator import allocate
from dragoon.errors import InvalidInputError, UnsupportedError
from tests.unit.allocator.objects import GPU_CLASS, claim, node, request


def allocated(wish: dict[str, Any]) -> object:
    return allocate([wish], classes=[GPU_CLASS], slices=[], allocated_claims=[], node=node())


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (claim(request(allocationMode="Some")), "allocationMode Some"),
        (claim(request(derivedAttributes=[{"name": "x"}])), "derivedAttributes"),
        (claim(request(), same=[{}]), "constraints"),
        (claim(request(selectors=[{"jq": "."}])), "selectors.0."),
    ],
)
def test_what_dragoon_does_not_do_is_refused_by_field(wish: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedError, match=f"ResourceClaim c: .*{field}"):
        allocated(wish)


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        # The shape of v1beta1: the fields stand beside the name.
        (
            claim({"name": "g", "deviceClassName": "x"}),
            "request g: neither exactly nor firstAvailable",
        ),
        (claim({"exactly": {}}), "requests.. name is missing|name is missing"),
        (
            claim({"name": "g", "exactly": {"count": 1}}),
            "request g: exactly: deviceClassName is missing",
        ),
        (claim(request(count=-1)), "count: found -1, allowed is a number from 1"),
        (claim(request(count=2, allocationMode="All")), "count: not allowed with allocationMode"),
        (
            claim({"name": "g", "firstAvailable": [{"name": "s"}]}),
            "request g/s: deviceClassName is missing",
        ),
        (
            claim({**request(), "firstAvailable": [{"name": "s"}]}),
            "request g: both exactly and firstAvailable are set",
        ),
        (
            claim({"name": "g", "firstAvailable": [{"name": f"s{i}"} for i in range(9)]}),
            "request g: firstAvailable has 9 entries, allowed are 8",
        ),
        (
            claim({"name": "g", "firstAvailable": [{"name": "s", "adminAccess": True}]}),
            "request g/s: adminAccess is not allowed in firstAvailable",
        ),
        (
            claim(request(capacity={"requests": {"memory": "80 GB"}})),
            "request g: exactly: capacity.requests.memory: quantity: found '80 GB'",
        ),
        ({"metadata": {"name": "c"}}, "ResourceClaim c: spec is missing"),
        ({"spec": {}}, "ResourceClaim: metadata is missing"),
    ],
)
def test_c40_wrong_shape_is_named(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        allocated(wish)


def test_defaults_of_the_api_server_are_filled_in() -> None:
    wish = claim({"name": "g", "exactly": {"deviceClassName": "gpu.dragoon.dev"}})
    outcome = allocated(wish)
    assert "needs 1 device, there are 0" in str(getattr(outcome, "message", outcome))


def test_what_is_passed_in_is_not_changed() -> None:
    wish = claim(
        request(tolerations=[{"operator": "Exists"}]),
        config=[{"opaque": {"driver": "d", "parameters": {}}}],
    )
    before = repr(wish)
    allocated(wish)
    assert repr(wish) == before
