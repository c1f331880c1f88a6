"""Judging processes by themselves: what a node cannot easily be brought to."""

from typing import Any

from dragoon.api.enforcement import Tier
from dragoon.gpu.mig import GpuProcess
from dragoon.gpu.model import PciAddress
from dragoon.prepare.audit.judging import Cause, Known, judge
from dragoon.prepare.audit.looking import Sighting
from dragoon.prepare.audit.whereabouts import PodPlace
from dragoon.prepare.enforcement.usage import CardUsage, ShareUsage
from dragoon.prepare.journal import Contents, Entry, Foreign, HeldDevice, State
from dragoon.prepare.mig import MigPart
from dragoon.prepare.shares import Share

CARD = PciAddress(0, 0x10, 0)
POD, OTHER = "pod-uid", "other-pod-uid"
GIB = 1 << 30


def entry(pod: str = POD, **part: Any) -> Entry:
    held = HeldDevice("gpu", "n/gpu", "gpu-0", str(CARD), "GPU-0", "x", **part)
    return Entry(
        namespace="team-a",
        name=f"claim-of-{pod}",
        uid="c",
        boot_id="b",
        state=State.PREPARED,
        devices=(held,),
        steps=(),
        pod_uid=pod,
    )


def sighting(used: int = GIB, *, pod: str = POD, inner: int | None = 1, **more: Any) -> Sighting:
    process = GpuProcess(7, used, name="python")
    return Sighting(CARD, process, inner_pid=inner, place=PodPlace(pod), **more)


def causes(*seen: Sighting, journal: Contents, usage: tuple[ShareUsage, ...] = ()) -> list[Cause]:
    return [one.cause for one in judge(seen, Known(journal, {}, usage))]


SHARED = entry(share=Share(4 * GIB, 0, 80 * GIB, Tier.HAMI, "main"))
LIMITED = ShareUsage(
    (SHARED.claim,), POD, "main", (CardUsage("GPU-0", 4 * GIB, 0, 100, frozenset({1})),)
)


def test_the_share_of_a_newer_version_is_not_judged_by_rules_that_it_may_not_know() -> None:
    journal = Contents(foreign=(Foreign(SHARED, "a step of tomorrow"),))
    assert causes(sighting(20 * GIB), journal=journal) == []
    assert causes(sighting(pod=OTHER), journal=journal) == [Cause.OTHERS_DEVICE]


def test_a_share_that_nothing_was_set_for_is_not_limited() -> None:
    journal = Contents((SHARED,))
    assert causes(sighting(), journal=journal) == [Cause.NOT_LIMITED]
    assert causes(sighting(), journal=journal, usage=(LIMITED,)) == []


def test_a_process_whose_pid_in_its_container_is_unknown_gets_the_benefit_of_the_doubt() -> None:
    journal = Contents((SHARED,))
    assert causes(sighting(inner=None), journal=journal, usage=(LIMITED,)) == []
    assert causes(sighting(inner=2), journal=journal, usage=(LIMITED,)) == [Cause.NOT_LIMITED]


def test_a_process_is_judged_by_the_mig_device_in_which_it_runs() -> None:
    mine = entry(mig=MigPart("1g.10gb", 0, 1, uuid="MIG-1"))
    theirs = entry(OTHER, mig=MigPart("1g.10gb", 1, 1, uuid="MIG-2"))
    journal = Contents((mine, theirs))
    assert causes(sighting(mig_uuid="MIG-1"), journal=journal) == []
    assert causes(sighting(mig_uuid="MIG-2"), journal=journal) == [Cause.OTHERS_DEVICE]
    assert causes(sighting(mig_uuid="MIG-3"), journal=journal) == [Cause.WITHOUT_CLAIM]


def test_admin_access_takes_nothing_from_anybody_and_has_no_limit() -> None:
    watching = entry(OTHER, admin_access=True)
    journal = Contents((SHARED, watching))
    assert causes(sighting(20 * GIB, pod=OTHER), journal=journal, usage=(LIMITED,)) == []
    (found,) = judge([sighting(pod="third")], Known(journal, {}))
    assert found.claims == (SHARED.claim,)
