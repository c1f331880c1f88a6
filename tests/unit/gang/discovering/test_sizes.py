import pytest

from dragoon.gang.discovering.sizes import KUEUE_TOTAL, size_of
from tests.unit.gang.records_for_tests import job, pod


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("4096", 4096), (" 8 ", 8), ("007", 7)])
def test_a_whole_number_is_a_size(text: str, number: int) -> None:
    assert size_of(pod("p", size=text), {}).number == number


@pytest.mark.parametrize("text", ["0", "-3", "4097", "99999999999", "", "2.0", "two", "²", "1e3"])
def test_anything_else_is_told_with_what_is_allowed(text: str) -> None:
    found = size_of(pod("p", size=text), {})
    assert found.number is None
    assert "annotation dragoon.dev/gang-size: found" in found.wrong
    assert "allowed is a whole number from 1 to 4096" in found.wrong


def test_without_an_annotation_the_jobs_parallelism_is_the_size() -> None:
    jobs = {"job-j": job("j", parallelism=6, completions=4)}
    found = size_of(pod("p", owner="j", size=None), jobs)
    assert (found.number, found.source) == (4, "spec.parallelism of its Job")


def test_kueues_pod_groups_are_known() -> None:
    found = size_of(pod("p", size=None, annotations={KUEUE_TOTAL: "5"}), {})
    assert (found.number, found.source) == (5, f"annotation {KUEUE_TOTAL}")


def test_two_answers_are_refused_unless_ours_decides() -> None:
    jobs = {"job-j": job("j", parallelism=2)}
    kueue = {KUEUE_TOTAL: "5"}
    found = size_of(pod("p", owner="j", size=None, annotations=kueue), jobs)
    assert found.number is None
    assert "two sizes" in found.wrong
    assert size_of(pod("p", owner="j", size="3", annotations=kueue), jobs).number == 3


def test_a_bare_pod_that_says_nothing_is_told() -> None:
    found = size_of(pod("p", size=None), {})
    assert (found.number, found.source) == (None, "")
    assert "found none" in found.wrong
