import pytest

from dragoon.gang.discovering.sizes import size_of
from tests.unit.gang.records_for_tests import ground, job, pod


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("4096", 4096), (" 8 ", 8), ("007", 7)])
def test_a_whole_number_is_a_size(text: str, number: int) -> None:
    assert size_of(pod("p", size=text), ground()).number == number


@pytest.mark.parametrize("text", ["0", "-3", "4097", "99999999999", "", "2.0", "two", "²", "1e3"])
def test_anything_else_is_told_with_what_is_allowed(text: str) -> None:
    found = size_of(pod("p", size=text), ground())
    assert found.number is None
    assert "annotation dragoon.dev/gang-size: found" in found.wrong
    assert "allowed is a whole number from 1 to 4096" in found.wrong


def test_without_an_annotation_the_jobs_parallelism_is_the_size() -> None:
    found = size_of(pod("p", owner="j", size=None), ground(job("j", parallelism=6, completions=4)))
    assert (found.number, found.source) == (4, "Job `spec.parallelism`, at most `spec.completions`")


def test_a_bare_pod_that_says_nothing_is_told() -> None:
    found = size_of(pod("p", size=None), ground())
    assert (found.number, found.source) == (None, "")
    assert "found none" in found.wrong
