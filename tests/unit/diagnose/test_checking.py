"""Checks: every code is explained, nothing is found on machines that are well."""

from collections import Counter
from dataclasses import replace

import pytest

from dragoon.diagnose import reference
from dragoon.diagnose.checking import CATEGORIES, CHECKS, Evidence, Unread, run
from dragoon.diagnose.codes import Check
from dragoon.diagnose.waiting import REASONS
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.sim.profiles import shipped

PREFIXES = {
    "host": "HOST",
    "runtime": "RUNTIME",
    "kubelet": "KUBELET",
    "api": "API",
    "state": "STATE",
    "gang": "GANG",
}


def of_machine(name: str) -> Evidence:
    gpus = open_gpus(name, beside_driver=True)
    try:
        return replace(Evidence(), driver_problem="", inventory=gpus.inventory())
    finally:
        gpus.close()


@pytest.mark.parametrize("machine", shipped())
def test_nothing_is_found_on_a_machine_that_is_well(machine: str) -> None:
    report = run(of_machine(machine), ("host",))
    found = {one.check.code: [str(problem) for problem in one.problems] for one in report.found}
    # C05: the one that is shipped with a fault.
    assert set(found) == ({"HOST008"} if machine == "hgx-b200-one-gpu-off-nvlink" else set())


def test_codes_are_unique_and_say_their_category() -> None:
    codes = [rule.check.code for rules in CATEGORIES.values() for rule in rules]
    assert max(Counter(codes).values()) == 1
    for category, rules in CATEGORIES.items():
        for number, rule in enumerate(rules, 1):
            assert rule.check.code == f"{PREFIXES[category]}{number:03d}"


@pytest.mark.parametrize("check", [*CHECKS.values(), *REASONS.values()], ids=lambda one: one.code)
def test_every_code_has_an_anchor_a_reason_and_a_remedy(check: Check) -> None:
    assert check.anchor == f"docs/checks.md#{check.code.lower()}"
    assert f"\n### {check.code}\n" in reference.checks()
    assert check.title
    assert check.why
    assert check.remedy.endswith(".")


def test_what_nobody_gathered_is_not_checked_and_is_no_finding() -> None:
    report = run(Evidence())
    assert report.is_blind
    assert report.is_fine
    assert {one.skipped for one in report.results} == {"nobody looked"}


def test_a_part_that_is_missing_costs_only_the_checks_that_need_it() -> None:
    evidence = replace(of_machine("dgx-h100"), driver_files=Unread("no files here"))
    report = run(evidence, ("host",))
    skipped = {one.check.code: one.skipped for one in report.results if one.skipped}
    assert skipped == dict.fromkeys(("HOST002", "HOST003"), "no files here")
    assert not report.is_blind
