"""Rules about layout, names, versions, constraints and configs."""

from pathlib import Path
from typing import Any

import pytest

from dragoon.diagnose import reference
from dragoon.diagnose.linting import CHECKS
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import (
    GPU_CLASS,
    Raw,
    claim,
    class_,
    codes,
    exactly,
    findings,
    only,
    pod,
    template,
)

DOCS = Path(__file__).parents[3] / "docs"
WHOLE: Raw = {"name": "g", "resourceClaimName": "c"}


@pytest.mark.parametrize(
    ("version", "kind", "code", "instead"),
    [
        ("resource.kubernetes.io/v1", "ResourceClaim", "DRG101", "resource.k8s.io/v1"),
        ("v1", "ResourceClaimTemplate", "DRG101", "resource.k8s.io/v1"),
        ("resource.k8s.io/v1alpha2", "ResourceClaim", "DRG102", "apiVersion: resource.k8s.io/v1"),
        ("resource.k8s.io/v2", "DeviceClass", "DRG102", "apiVersion: resource.k8s.io/v1"),
        ("resource.k8s.io/v1beta1", "ResourceClaim", "DRG103", "under exactly"),
        ("resource.k8s.io/v1beta2", "DeviceClass", "DRG103", "apiVersion: resource.k8s.io/v1"),
        ("resource.k8s.io/v1", "ResourceClass", "DRG104", "DeviceClass"),
        ("resource.k8s.io/v1", "ResourceClaimTemplates", "DRG104", "ResourceClaimTemplate?"),
        ("resource.k8s.io/v1alpha3", "DeviceTaintRule", "DRG103", "resource.k8s.io/v1"),
        ("scheduling.k8s.io/v1", "PodGroup", "DRG102", "scheduling.k8s.io/v1beta1"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup", "DRG102", "scheduling.k8s.io/v1beta1"),
        ("scheduling.k8s.io/v1beta1", "PodGroup", "DRG103", "off by default"),
        ("scheduling.volcano.sh/v1", "PodGroup", "DRG102", "scheduling.volcano.sh/v1beta1"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", None, ""),
        ("scheduling.volcanos.sh/v1beta1", "PodGroup", "DRG101", "scheduling.volcano.sh/v1beta1"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", None, ""),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue", "DRG103", "kueue.x-k8s.io/v1beta2"),
        ("kueue.x-k8s.io/v1", "ClusterQueue", "DRG102", "kueue.x-k8s.io/v1beta2"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueues", "DRG104", "did you mean LocalQueue?"),
        ("scheduling.volcano.sh/v1beta1", "Queue", None, ""),
        ("messaging.example.com/v1", "Queue", None, ""),
        ("scheduling.k8s.io/v1", "PriorityClass", None, ""),
    ],
)
def test_groups_and_versions_that_the_api_does_not_have_are_named_with_those_it_has(
    version: str, kind: str, code: str | None, instead: str
) -> None:
    found = findings({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}})
    assert codes(found) == ([] if code is None else [code])
    assert not found or instead in found[0].instead


def test_a_claim_of_v1beta1_in_its_own_layout_has_only_the_version_told() -> None:
    old = claim({"name": "gpu", "deviceClassName": "gpu.dragoon.dev", "count": 1})
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    assert codes(findings(old)) == ["DRG103"]


def test_c40_a_template_with_the_spec_of_a_claim_is_told() -> None:
    wrong = {**claim(exactly()), "kind": "ResourceClaimTemplate"}
    found = only(findings(wrong))
    assert (found.code, found.path) == ("DRG203", "spec.devices")


@pytest.mark.parametrize(
    ("wish", "code", "path", "instead"),
    [
        ({"name": "g", "exactly": {"deviceClass": "x"}}, "DRG204", "deviceClass", "ClassName?"),
        ({"name": "g", "exact": {"deviceClassName": "x"}}, "DRG204", "exact", "exactly?"),
        (exactly(count="2"), "DRG205", "count", "a number"),
        (exactly(selectors={"cel": {}}), "DRG205", "selectors", "a list"),
        (exactly(allocationMode="all"), "DRG208", "allocationMode", "ExactCount, All"),
        (exactly(count=0), "DRG208", "count", "from 1"),
        (exactly(count=2, allocationMode="All"), "DRG208", "count", "no count"),
        (exactly(class_name=""), "DRG206", "deviceClassName", "a DeviceClass"),
        ({"exactly": {"deviceClassName": "x"}}, "DRG206", "name", "a name"),
        ({"name": "g"}, "DRG206", "requests[0]", "one of them"),
        (
            {**exactly(), "firstAvailable": [{"name": "a", "deviceClassName": "x"}]},
            "DRG206",
            "",
            "",
        ),
        (exactly(capacity={"requests": {"memory": "4 GB"}}), "DRG208", "memory", "a quantity"),
        ({"name": "g", "firstAvailable": [{"name": "a"}]}, "DRG206", "deviceClassName", ""),
    ],
)
def test_c40_what_is_wrong_in_a_request_is_told_with_its_path(
    wish: Raw, code: str, path: str, instead: str
) -> None:
    found = findings(claim(wish))
    assert code in codes(found)
    one = next(one for one in found if one.code == code)
    assert path in one.path
    assert instead in one.instead


def test_c40_requests_with_one_name_are_told_once() -> None:
    found = only(findings(claim(exactly(), exactly())))
    assert (found.code, found.found) == ("DRG207", "2 requests named gpu")


def test_c42_configs_and_constraints_may_name_a_request_or_one_of_its_alternatives() -> None:
    both = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "large", "deviceClassName": "mig.dragoon.dev"},
            {"name": "small", "deviceClassName": "mig.dragoon.dev"},
        ],
    }
    opaque = {"driver": "x", "parameters": {}}
    right = [{"requests": ["gpu"], "opaque": opaque}, {"requests": ["gpu/large"], "opaque": opaque}]
    assert findings(claim(both, config=right)) == ()
    wrong = [{"requests": ["gpu/medium"], "opaque": opaque}]
    assert codes(findings(claim(both, config=wrong))) == ["DRG209"]


@pytest.mark.parametrize("value", ["text", 3, [1], {"devices": []}, {"devices": {"requests": 1}}])
def test_a_spec_of_any_wrong_type_is_a_finding_and_no_fault(value: Any) -> None:
    for kind in ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"):
        findings({"apiVersion": "resource.k8s.io/v1", "kind": kind, "spec": value})
    broken = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": value}
    assert {one.severity for one in findings(broken)} <= {"error"}


@pytest.mark.parametrize("value", ["text", 3, [1], {"a": 1}, None])
def test_pods_of_any_wrong_shape_are_no_fault(value: Any) -> None:
    findings(pod(value, value))
    findings(pod([value], [value]))
    findings({"apiVersion": "v1", "kind": "Pod", "spec": value})
    findings(claim(exactly(), constraints=value, config=value))
    findings(claim(exactly(), constraints=[value], config=[value]))


def test_c40_container_request_that_does_not_exist_starts_without_devices() -> None:
    found = only(findings(claim(exactly("a")), pod([WHOLE], [{"name": "g", "request": "b"}])))
    assert found.code == "DRG305"
    assert "without the device" in CHECKS["DRG305"].why


def test_c40_an_alternative_is_named_by_its_request() -> None:
    either = {"name": "g", "firstAvailable": [{"name": "a", "deviceClassName": "x"}]}
    found = only(findings(claim(either), pod([WHOLE], [{"name": "g", "request": "g/a"}])))
    assert (found.code, found.instead.partition(":")[0]) == ("DRG305", "g")


def test_a_claim_that_no_container_uses_is_told_and_is_no_error() -> None:
    found = only(findings(claim(exactly()), pod([WHOLE], [])))
    assert (found.code, found.severity) == ("DRG308", "warning")


def test_a_claim_that_is_not_in_the_files_is_told_only_where_a_cluster_is_known() -> None:
    alone = pod([{"name": "g", "resourceClaimName": "gone"}], [{"name": "g"}])
    assert findings(alone) == ()
    known = ClusterSnapshot.of([claim(exactly(), name="gonee"), GPU_CLASS])
    found = only(findings(alone, snapshot=known))
    assert (found.code, found.instead) == ("DRG307", "did you mean gonee?")


def test_a_near_miss_in_the_files_is_told_without_a_cluster() -> None:
    found = only(
        findings(
            template(exactly(), name="one-gpu"),
            pod([{"name": "g", "resourceClaimTemplateName": "one-gpus"}], [{"name": "g"}]),
        )
    )
    assert (found.code, found.instead) == ("DRG307", "did you mean one-gpu?")


def test_a_class_that_is_not_there_is_told_where_a_cluster_is_known() -> None:
    known = ClusterSnapshot.of([GPU_CLASS])
    found = only(findings(claim(exactly(class_name="gpus.dragoon.dev")), snapshot=known))
    assert (found.code, found.instead) == ("DRG309", "did you mean gpu.dragoon.dev?")


@pytest.mark.parametrize(
    ("attribute", "code", "instead"),
    [
        ("gpu.dragoon.dev/nvlinkDomain", None, ""),
        ("gpu.dragoon.dev/nvlinkGroup", "DRG210", "gpu.dragoon.dev/nvlinkDomain"),
        ("gpu.dragoon.dev/numaNode", "DRG210", "resource.kubernetes.io/numaNode"),
        ("nvlinkDomain", "DRG208", "gpu.dragoon.dev/nvlinkDomain"),
        ("dragoon.dev/nvlinkDomain", "DRG210", "gpu.dragoon.dev/nvlinkDomain"),
        ("gpu.dragoon.dev/parentUUID", "DRG210", "devices of type mig"),
        ("resource.kubernetes.io/pcieRoot", None, ""),
        ("dra.net/anything", None, ""),
    ],
)
def test_constraints_name_attributes_that_devices_of_the_class_have(
    attribute: str, code: str | None, instead: str
) -> None:
    found = findings(claim(exactly(count=2), constraints=[{"matchAttribute": attribute}]))
    assert codes(found) == ([] if code is None else [code])
    assert not found or found[0].instead == instead


@pytest.mark.parametrize(
    ("parameters", "code", "instead"),
    [
        ({"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConfig"}, None, ""),
        ({"apiVersion": "gpu.dragoon.dev/v1", "kind": "GpuConfig"}, "DRG501", "v1alpha1?"),
        ({}, "DRG501", ""),
        (
            {"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConfig", "timeSlice": "long"},
            "DRG504",
            "did you mean Long?",
        ),
        (
            {"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConfig", "timeslice": "Long"},
            "DRG504",
            "did you mean timeSlice?",
        ),
        ({"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "GpuConf"}, "DRG502", "GpuConfig?"),
        ({"apiVersion": "gpu.dragoon.dev/v1alpha1", "kind": "MigConfig"}, "DRG503", "GpuConfig"),
    ],
)
def test_c41_configs_for_dragoon_have_a_known_group_and_kind(
    parameters: Raw, code: str | None, instead: str
) -> None:
    opaque = {"driver": "gpu.dragoon.dev", "parameters": parameters}
    found = findings(claim(exactly(), config=[{"opaque": opaque}]))
    assert codes(found) == ([] if code is None else [code])
    assert not found or instead in found[0].instead
    of_class = findings(
        class_("mine", "device.driver == 'gpu.dragoon.dev'", config=[{"opaque": opaque}])
    )
    assert codes(of_class) == ([] if code in {None, "DRG503"} else [code])


@pytest.mark.parametrize(
    ("class_name", "requests", "code", "instead"),
    [
        ("shared.dragoon.dev", {"memory": "4Gi", "cores": 25}, None, ""),
        ("shared.dragoon.dev", {"memory": "4Gi", "cores": 0}, "DRG602", "1 to 100"),
        ("shared.dragoon.dev", {"gpu.dragoon.dev/memory": "4Gi"}, "DRG601", "mean memory?"),
        ("shared.dragoon.dev", {"vram": "4Gi"}, "DRG601", "mean memory?"),
        ("gpu.dragoon.dev", {"cores": "25"}, "DRG601", "there are memory"),
        ("other", {"anything": "25"}, None, ""),
    ],
)
def test_c23_c26_amounts_of_a_share_are_those_its_devices_have(
    class_name: str, requests: Raw, code: str | None, instead: str
) -> None:
    found = findings(claim(exactly(class_name=class_name, capacity={"requests": requests})))
    assert codes(found) == ([] if code is None else [code])
    assert not found or instead in found[0].instead


def test_every_check_has_a_section_in_the_documentation_that_a_finding_leads_to() -> None:
    page = (DOCS / "checks.md").read_text()
    assert page == reference.checks(), "run: dragoon reference checks > docs/checks.md"
    assert all(f"\n### {code}\n" in page for code in CHECKS)
    found = only(findings({"apiVersion": "resource.k8s.io/v9", "kind": "DeviceClass"}))
    assert found.anchor == "docs/checks.md#drg102"
