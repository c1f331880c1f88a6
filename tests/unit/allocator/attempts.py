"""One attempt of the allocator with defaults for what a test does not care about."""

from collections.abc import Sequence

from dragoon.allocator import Allocated, Unsatisfiable, allocate, verify
from tests.unit.allocator.objects import GPU_CLASS, Raw, node


def attempt(
    *claims: Raw,
    slices: Sequence[Raw],
    classes: Sequence[Raw] = (GPU_CLASS,),
    held: Sequence[Raw] = (),
    on: Raw | None = None,
) -> Allocated | Unsatisfiable:
    """Allocates; whatever is allocated must please the verifier."""
    where = on or node()
    outcome = allocate(claims, classes=classes, slices=slices, allocated_claims=held, node=where)
    if isinstance(outcome, Allocated):
        assert (
            verify(
                claims,
                outcome.allocations,
                classes=classes,
                slices=slices,
                allocated_claims=held,
                node=where,
            )
            == []
        )
    return outcome


def chosen(outcome: Allocated | Unsatisfiable) -> list[list[str]]:
    """The devices of each claim, by name."""
    assert isinstance(outcome, Allocated), outcome
    return [
        [result["device"] for result in allocation["devices"]["results"]]
        for allocation in outcome.allocations
    ]


def refusal(outcome: Allocated | Unsatisfiable) -> Unsatisfiable:
    assert isinstance(outcome, Unsatisfiable), outcome
    return outcome
