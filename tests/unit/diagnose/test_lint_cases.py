"""The manifests of the case log (C11, C38, C40, C41): each gets the findings that it asks for."""

from typing import Any

import pytest
import yaml

from dragoon.cel import EvaluationError, compile_selector, device_view
from dragoon.diagnose.linting import CHECKS, lint
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.unit.diagnose.cases import (
    GPU_CLASS,
    case,
    case_text,
    codes,
    findings,
    manifests,
    needs_case_files,
    only,
    selecting,
    slice_,
    template,
)

pytestmark = needs_case_files


@pytest.mark.parametrize("name", ["m01", "m02", "m03", "m04", "m05", "m08"])
def test_c40_right_manifests_have_no_finding(name: str) -> None:
    assert lint(case(name)) == ()


@pytest.mark.parametrize("name", ["m09", "m10", "m11", "m12", "m14", "m17", "m18"])
def test_c40_right_workloads_have_no_finding(name: str) -> None:
    assert lint(case(name)) == ()


def test_c40_m06_fields_of_v1beta1_belong_under_exactly() -> None:
    found = only(lint(case("m06")))
    assert (found.code, found.object) == ("DRG201", "ResourceClaimTemplate team-a/old-layout")
    assert found.path == "spec.spec.devices.requests[0].deviceClassName"
    assert "v1beta1" in found.found
    fixed = found.instead.partition("under exactly: ")[2]
    assert yaml.safe_load(fixed) == {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu.dragoon.dev", "count": 2},
    }


def test_c40_m07_double_spec_and_the_removed_source_are_one_finding_each() -> None:
    nested, source = lint(case("m07"))
    assert (nested.code, nested.object, nested.path) == (
        "DRG202",
        "ResourceClaim team-a/nested",
        "spec.spec",
    )
    assert (source.code, source.object) == ("DRG301", "Pod team-a/nested")
    assert source.path == "spec.resourceClaims[0].source"
    assert "removed" in source.found
    assert yaml.safe_load(source.instead) == {"name": "gpu", "resourceClaimName": "nested"}


def test_c40_m19_each_of_the_five_references_is_one_finding() -> None:
    files = manifests(
        case_text("m19"), template(name="only-in-team-b", namespace="team-b"), case_text("m01")
    )
    in_team_b = template(
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.dragoon.dev"}},
        name="only-in-team-b",
        namespace="team-b",
    )
    files = manifests(case_text("m19"), in_team_b, case_text("m01"))
    found = {one.path: one for one in lint(files)}
    claims = "spec.containers[0].resources.claims"
    assert {path: one.code for path, one in found.items()} == {
        "spec.resourceClaims[1].resourceClaimTemplateName": "DRG306",
        "spec.resourceClaims[2]": "DRG302",
        f"{claims}[1]": "DRG304",
        f"{claims}[2].name": "DRG303",
        f"{claims}[3].request": "DRG305",
    }
    assert "team-b" in found["spec.resourceClaims[1].resourceClaimTemplateName"].found
    assert found[f"{claims}[2].name"].instead == "did you mean a?"
    assert found[f"{claims}[3].request"].instead == "did you mean gpu?"
    assert {one.severity for one in found.values()} == {"error"}


def test_c40_a_file_with_a_document_that_is_not_kubernetes_keeps_its_other_findings() -> None:
    foreign, layout = findings("schema: case-cel/1\ndevice: {}", case_text("m06"))
    assert (foreign.code, foreign.origin.document) == ("DRG002", 1)
    assert (layout.code, layout.origin.document) == ("DRG201", 2)


def test_c41_m15_configs_that_dragoon_would_refuse_are_found_and_others_left_alone() -> None:
    found = {one.path: one for one in lint(case("m15"))}
    scoped = found["spec.devices.config[4].requests[0]"]
    assert (scoped.code, scoped.instead) == ("DRG209", "did you mean gpu?")
    for_mig = found["spec.devices.config[3].opaque.parameters.kind"]
    assert for_mig.code == "DRG503"
    assert "MigConfig" in for_mig.found
    assert "request gpu got a whole GPU" in for_mig.found
    for index in range(3):
        unknown = found[f"spec.devices.config[{index}].opaque.parameters.sharing"]
        assert unknown.code == "DRG504"
        assert "timeSlice" in unknown.found
    assert not any("config[5]" in path for path in found)


def test_c38_m13_an_index_points_at_uuid_and_lists_what_there_is() -> None:
    found = only(lint(case("m13")))
    assert found.code == "DRG404"
    assert "uuid" in found.instead
    assert "pciBusID" in found.instead
    assert "productName" in found.found


def expressions() -> dict[str, dict[str, Any]]:
    loaded = yaml.safe_load(case_text("m16"))
    return {one["id"]: one for one in loaded["expressions"]}


def h100() -> dict[str, Any]:
    device = yaml.safe_load(case_text("m16"))["device"]
    kinds = dict.fromkeys(("driverVersion", "cudaComputeCapability"), "version")
    return {
        "name": "gpu-0000-65-00-0",
        "attributes": {
            name: {kinds.get(name, "string"): value} for name, value in device["attributes"].items()
        },
        "capacity": {"memory": {"value": device["capacity"]["memory"]}},
    }


@pytest.mark.parametrize(
    ("number", "code", "instead"),
    [
        ("E01", None, ""),
        ("E02", "DRG408", r"productName.matches('\\bH100\\b')"),
        ("E03", None, ""),
        ("E04", "DRG403", "device.capacity['gpu.dragoon.dev'].memory.compareTo(quantity('40Gi'))"),
        ("E05", "DRG404", "near: productName"),
        ("E06", "DRG404", "uuid or resource.kubernetes.io/pciBusID"),
        ("E07", "DRG413", "near: productName"),
        ("E08", None, ""),
        ("E09", "DRG401", "device.driver == 'gpu.dragoon.dev'"),
        ("E10", "DRG405", "device.attributes['gpu.dragoon.dev'].productName.contains('H100')"),
    ],
)
@pytest.mark.parametrize("with_devices", [False, True])
def test_c38_m16_each_expression_has_its_finding(
    number: str, code: str | None, instead: str, *, with_devices: bool
) -> None:
    one = expressions()[number]
    cluster = ClusterSnapshot.of([GPU_CLASS, slice_(h100())]) if with_devices else None
    found = findings(selecting(one["cel"]), snapshot=cluster)
    assert codes(found) == ([] if code is None else [code])
    if code is None:
        return
    assert instead in found[0].instead
    assert CHECKS[found[0].code].severity == (
        "error" if one["result"] in {"missing", "compile"} else "warning"
    )
    if with_devices and one["result"] == "missing":
        assert "fails on device gpu.dragoon.dev/n/gpu/gpu-0000-65-00-0" in found[0].found


@pytest.mark.parametrize("number", ["E05", "E06"])
def test_c38_the_guarded_form_that_is_offered_does_not_fail_on_the_device(number: str) -> None:
    view = device_view("gpu.dragoon.dev", h100())
    text = expressions()[number]["cel"]
    with pytest.raises(EvaluationError):
        compile_selector(text).evaluate(view)
    offered = only(findings(selecting(text))).instead.rpartition("an error: ")[2]
    assert compile_selector(offered).evaluate(view) is False


@pytest.mark.parametrize("number", ["E02", "E04", "E09", "E10"])
def test_c38_the_text_that_is_offered_instead_matches_the_device(number: str) -> None:
    offered = only(findings(selecting(expressions()[number]["cel"]))).instead
    assert compile_selector(offered).evaluate(device_view("gpu.dragoon.dev", h100())) is True
