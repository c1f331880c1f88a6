"""Every case of this folder, against Dragoon's allocator.

The cases are what the allocator of `k8s.io/dynamic-resource-allocation` 0.37.2 is held to, as far as
the default gates of 1.37 go, written anew; that Kubernetes gives the same is tested in tests/oracle.
"""

import pytest

from dragoon.allocator import Allocated, allocate, verify
from dragoon.errors import InvalidInputError, UnsupportedError
from tests.conformance.cases import CASES
from tests.conformance.notation import Case
from tests.conformance.outcomes import outcome

REFUSALS = {"refused": InvalidInputError, "unsupported": UnsupportedError}


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in CASES])
def test_allocator_gives_what_kubernetes_gives(case: Case) -> None:
    if isinstance(case.gives, str) and case.gives in REFUSALS:
        with pytest.raises(REFUSALS[case.gives]):
            allocate(case.named_claims(), **case.arguments())
        return
    answer = allocate(case.named_claims(), **case.arguments())
    expected = "nothing" if case.gives == "invalid pools" else case.gives
    assert outcome(answer) == expected
    invalid = any(note.problem.startswith("invalid") for note in answer.explanation.pools)
    assert invalid or case.gives != "invalid pools"
    if isinstance(answer, Allocated):
        assert verify(case.named_claims(), answer.allocations, **case.arguments()) == []


def test_each_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
