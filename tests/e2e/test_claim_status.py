"""What a claim says of itself in a real cluster: what it got, or why it never will."""

from functools import partial

import pytest

from dragoon.api import device_status
from dragoon.api.names import DRIVER_NAME
from dragoon.api.opaque_config import API_VERSION
from testbed.bed import Bed, Object
from testbed.objects import MAIN, claim_spec, container, pod, template
from testbed.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

READY = device_status.READY


def claim_of(bed: Bed, name: str, namespace: str) -> Object | None:
    """The claim that was made for a pod."""
    return next(iter(bed.claims_of(name, namespace)), None)


def told(bed: Bed, name: str, namespace: str, status: str) -> list[Object]:
    """The entries of a pod's claim, once all of its devices are ready, or are not."""

    def look() -> list[Object] | None:
        entries = ((claim_of(bed, name, namespace) or {}).get("status") or {}).get("devices") or []
        ready = [device_status.condition(one, READY) for one in entries]
        return entries if ready and all(one and one["status"] == status for one in ready) else None

    return until(f"the claim of {name} is Ready={status}", look)


def test_a_claim_says_what_it_got(bed: Bed, namespace: str) -> None:
    bed.apply(
        template("pair", namespace, claim_spec(2)),
        pod("p", namespace, container(MAIN, "g"), templates={"g": "pair"}),
    )
    bed.running("p", namespace)
    entries = told(bed, "p", namespace, "True")
    assert {one["device"] for one in entries} == bed.devices_seen("p", namespace, MAIN)[0]
    assert all(one["data"]["gpuUUID"].startswith("GPU-") for one in entries)
    claim = claim_of(bed, "p", namespace)
    assert claim is not None
    assert device_status.refusals(claim, DRIVER_NAME) == ()


def test_a_claim_that_is_refused_for_good_says_why_and_there_is_one_event(
    bed: Bed, namespace: str
) -> None:
    spec = claim_spec()
    parameters = {"apiVersion": API_VERSION, "kind": "MigConfig"}
    spec["devices"]["config"] = [{"opaque": {"driver": DRIVER_NAME, "parameters": parameters}}]
    bed.apply(
        template("wrong", namespace, spec),
        pod("p", namespace, container(MAIN, "g"), templates={"g": "wrong"}),
    )
    (entry,) = told(bed, "p", namespace, "False")
    ready = device_status.condition(entry, READY)
    assert ready is not None
    assert ready["reason"] == "InvalidInput"
    assert "found MigConfig" in ready["message"]
    assert entry["data"] == {"onRefusal": "Report"}

    # A change of the pod makes the kubelet ask again at once.
    for time in range(2):
        asked = refused(bed, namespace)
        bed.kubectl("annotate", "pod", "p", "-n", namespace, f"again-{time}=1")
        again = partial(refused_since, bed, namespace, asked)
        until("the kubelet has asked again", again)
    selection = ("-n", namespace, "--field-selector", "reason=InvalidInput")
    # It is written beside the answer to the kubelet, not before it.
    (event,) = until("it was told", lambda: bed.items("events.events.k8s.io", *selection))
    assert event["regarding"]["kind"] == "Pod"
    assert event["note"] == ready["message"]
    assert "series" not in event


def refused_since(bed: Bed, namespace: str, before: int) -> bool:
    return refused(bed, namespace) > before


def refused(bed: Bed, namespace: str) -> int:
    """How often plugins have refused a claim of this namespace, by their logs."""
    lines = [line for one in bed.plugins.values() for line in one.log.read_text().splitlines()]
    return sum("prepare failed" in line and f"{namespace}/" in line for line in lines)
