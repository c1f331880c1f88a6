"""All cases."""

from typing import Final

from tests.conformance import (
    cases_choices,
    cases_plain,
    cases_pools,
    cases_rules,
    cases_shared_partitions,
    cases_shares,
)

CASES: Final = [
    *cases_plain.CASES,
    *cases_rules.CASES,
    *cases_choices.CASES,
    *cases_pools.CASES,
    *cases_shares.CASES,
    *cases_shared_partitions.CASES,
]
