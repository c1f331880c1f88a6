"""The cases of tests/conformance, against Kubernetes' own allocator."""

import pytest

from tests.conformance.cases import CASES
from tests.conformance.notation import Case
from tests.conformance.outcomes import error_class, written
from tests.oracle.comparing import THEIR_ERRORS
from tests.oracle.go_oracle import Oracle

_REFUSED = ("refused", "unsupported")


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in CASES])
def test_kubernetes_gives_what_the_case_says(oracle: Oracle, case: Case) -> None:
    arguments = case.arguments()
    answer = oracle.ask(
        "allocate",
        claims=case.named_claims(),
        classes=arguments["classes"],
        slices=arguments["slices"],
        allocated=arguments["allocated_claims"],
        node=arguments["node"],
    )
    if isinstance(case.gives, str) and case.gives in _REFUSED:
        assert answer.get("error")
    elif answer.get("onNode"):
        assert case.gives == "invalid pools"
    elif "error" in answer:
        assert case.gives == f"{error_class(answer['error'], THEIR_ERRORS)} error"
    elif answer["allocations"] is None:
        assert case.gives == ("nothing" if case.claims else [])
    else:
        assert written(answer["allocations"]) == case.gives
