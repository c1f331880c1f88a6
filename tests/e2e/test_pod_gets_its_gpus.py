"""A real pod on a real kubelet and containerd asks for GPUs and its containers get exactly those."""

import time

import pytest

from testbed.bed import Bed, Object
from testbed.objects import SAME_DOMAIN, claim, claim_spec, container, pod, template
from testbed.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def _two_claim_pod(bed: Bed, namespace: str) -> None:
    bed.apply(
        claim("one", namespace, claim_spec(1)),
        claim("pair", namespace, claim_spec(2, constraints=(SAME_DOMAIN,))),
        pod(
            "work",
            namespace,
            container("a", "one"),
            container("b", "pair"),
            container("none"),
            claims={"one": "one", "pair": "pair"},
        ),
    )


def test_each_container_sees_its_own_devices_and_no_others(bed: Bed, namespace: str) -> None:
    _two_claim_pod(bed, namespace)
    bed.running("work", namespace)

    one, pair = set(bed.allocated("one", namespace)), set(bed.allocated("pair", namespace))
    assert len(one) == 1
    assert len(pair) == 2
    assert not one & pair
    assert bed.devices_seen("work", namespace, "a") == (one, one)
    assert bed.devices_seen("work", namespace, "b") == (pair, pair)
    assert bed.devices_seen("work", namespace, "none") == (set(), set())


def test_a_pair_is_in_one_nvlink_domain(bed: Bed, namespace: str) -> None:
    _two_claim_pod(bed, namespace)
    node = bed.running("work", namespace)["spec"]["nodeName"]

    published = {
        device["name"]: device
        for piece in bed.slices(node)
        for device in piece["spec"].get("devices") or ()
    }
    domains = [
        published[name]["attributes"]["nvlinkDomain"]["string"]
        for name in bed.allocated("pair", namespace)
    ]
    assert len(domains) == 2
    assert len(set(domains)) == 1


def test_after_delete_cdi_file_and_journal_are_gone(bed: Bed, namespace: str) -> None:
    _two_claim_pod(bed, namespace)
    node = bed.running("work", namespace)["spec"]["nodeName"]
    plugin = bed.plugins[node]
    assert len(plugin.journal()) == 2
    assert len(plugin.cdi_files()) == 2

    bed.kubectl("delete", "pod", "-n", namespace, "work")

    until("no journal entry is left", lambda: not plugin.journal())
    until("no CDI file is left", lambda: not plugin.cdi_files())


def test_a_claim_that_cannot_be_met_stays_pending_and_the_rest_works(
    bed: Bed, namespace: str
) -> None:
    too_much = "device.capacity['gpu.dragoon.dev'].memory.compareTo(quantity('200Gi')) >= 0"
    bed.apply(
        claim("huge", namespace, claim_spec(1, selectors=(too_much,))),
        pod("waits", namespace, container("c", "gpu"), claims={"gpu": "huge"}),
        template("one", namespace, claim_spec(1)),
        pod("runs", namespace, container("c", "gpu"), templates={"gpu": "one"}),
    )
    bed.running("runs", namespace)

    until("kube-scheduler has tried the other pod", lambda: bed.unschedulable("waits", namespace))
    waiting = bed.get("resourceclaim", "huge", namespace)
    assert waiting is not None
    assert "allocation" not in waiting.get("status", {})


def test_sixteen_pods_at_once_run_about_as_soon_as_pods_without_claims(
    bed: Bed, namespace: str
) -> None:
    """Within 8 s; where even pods without claims take long, within three times as long as those."""
    bed.apply(template("one", namespace, claim_spec(1)))

    def without_claims(name: str) -> float:
        plain = (pod(f"{name}{number}", namespace, container("c")) for number in range(16))
        return _until_ready(bed, namespace, *plain)

    plain = without_claims("n")
    took = _until_ready(
        bed,
        namespace,
        *(
            pod(f"p{number}", namespace, container("c", "gpu"), templates={"gpu": "one"})
            for number in range(16)
        ),
    )
    if took > max(8.0, 3 * plain):
        # The machine may have become busy only meanwhile.
        plain = max(plain, without_claims("m"))
    bed.figures.append(
        f"16 pods on two nodes, apply to all ready: {took:.1f} s, without claims {plain:.1f} s"
    )
    assert took <= max(8.0, 3 * plain)

    seen = [
        (
            claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0][
                "values"
            ][0],
            result["device"],
        )
        for claim in bed.items("resourceclaims", "-n", namespace)
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(seen) == len(set(seen)) == 16
    assert {node for node, _ in seen} == set(bed.plugins)


def _until_ready(bed: Bed, namespace: str, *pods: Object) -> float:
    """Seconds from the first write of these pods until all of them are ready."""
    names = [f"pod/{one['metadata']['name']}" for one in pods]
    started = time.monotonic()
    bed.apply(*pods)
    bed.kubectl("wait", "-n", namespace, "--for=condition=Ready", *names, "--timeout=240s")
    return time.monotonic() - started
