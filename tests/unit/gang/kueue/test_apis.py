"""Which Kueue is spoken with."""

from dragoon.gang.kueue.apis import KNOWN, Apis, Unusable, choose

WHOLE = frozenset(("admissionchecks", "workloads", "resourceflavors", "clusterqueues"))


def test_no_group_is_no_kueue() -> None:
    assert choose((), {}) is None


def test_the_newest_version_that_is_known_and_whole_is_spoken() -> None:
    served = dict.fromkeys(KNOWN, WHOLE)
    assert choose(("v1beta2", "v1beta1"), served) == Apis("v1beta2")
    assert choose(("v1beta1",), served) == Apis("v1beta1")
    # A version of the future beside a known one is no obstacle.
    assert choose(("v1", "v1beta2"), served) == Apis("v1beta2")
    # A newer version that lacks a kind does not hide an older one that is whole.
    half = {"v1beta2": frozenset(("admissionchecks",)), "v1beta1": WHOLE}
    assert choose(("v1beta2", "v1beta1"), half) == Apis("v1beta1")


def test_half_of_kueue_is_told_with_what_is_missing() -> None:
    found = choose(("v1beta2",), {"v1beta2": WHOLE - {"workloads"}})
    assert isinstance(found, Unusable)
    assert found.reason == "Half"
    assert "v1beta2 lacks workloads" in found.message


def test_another_version_is_told_with_what_is_known() -> None:
    found = choose(("v2",), {"v2": WHOLE})
    assert isinstance(found, Unusable)
    assert found.reason == "Version"
    assert "found v2" in found.message
    assert "v1beta2" in found.message
