from dragoon.api.gang import LABEL
from dragoon.gang.records import pod_record, trimmed
from tests.unit.gang.records_for_tests import pod


def test_a_pod_without_label_and_claim_is_kept_as_amounts_only() -> None:
    found = pod_record(
        {
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"}},
            "spec": {
                "nodeName": "n0",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}],
            },
        }
    )
    assert (found.raw, found.labels, found.annotations) == (None, {}, {})
    assert found.amounts == {"cpu": 1500}
    assert (found.node, found.group) == ("n0", None)


def test_c49_claims_are_named_by_the_pods_status_and_never_guessed() -> None:
    entries = [
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
        {"name": "pending", "resourceClaimTemplateName": "t"},
        {"name": "own", "resourceClaimName": "mine"},
    ]
    statuses = [
        {"name": "made", "resourceClaimName": "p-made-x7k2"},
        {"name": "none", "resourceClaimName": None},
    ]
    found = pod_record(
        {
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [], "resourceClaims": entries},
            "status": {"resourceClaimStatuses": statuses},
        }
    )
    assert found.claims == ("p-made-x7k2", "mine")


def test_c49_a_pod_that_counts_devices_uses_the_claim_that_its_status_names() -> None:
    counting = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}]},
    }
    waiting = pod_record(counting)
    assert (waiting.claims, waiting.raw) == ((), None)
    made = {"extendedResourceClaimStatus": {"resourceClaimName": "p-extended-resources-x7k2"}}
    found = pod_record({**counting, "status": made})
    assert found.claims == ("p-extended-resources-x7k2",)
    assert found.raw is not None


def test_an_amount_that_is_none_costs_only_itself() -> None:
    found = pod_record(
        {
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]},
        }
    )
    assert found.amounts == {}


def test_gates_ends_and_pins_are_read() -> None:
    held = pod("a")
    assert (held.gated, held.waits, held.pinned, held.is_alive) == (True, True, False, True)
    assert not pod("a", phase="Failed").is_alive
    assert not pod("a", deleting=True).is_alive
    other = pod("a", gated=False, schedulingGates=[{"name": "somebody/else"}])
    assert (other.gated, other.waits) == (False, True)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}

    def pinned(*terms: object) -> bool:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return pod("a", gated=False, affinity={"nodeAffinity": required}).pinned

    assert pinned(term)
    assert not pinned(term, {"matchExpressions": []})
    assert not pinned()


def test_managed_fields_are_dropped() -> None:
    raw = {
        "metadata": {"name": "p", "managedFields": [1], "labels": {LABEL: "g"}},
        "spec": {"a": 1},
    }
    assert trimmed(raw) == {"metadata": {"name": "p", "labels": {LABEL: "g"}}, "spec": {"a": 1}}
