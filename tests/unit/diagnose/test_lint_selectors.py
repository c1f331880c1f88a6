"""Rules about selectors that need no case file."""

import pytest

from dragoon.cel import compile_selector, device_view
from dragoon.diagnose.linting.reading import reads
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.diagnose.vocabulary import PRODUCTS
from tests.unit.diagnose.cases import (
    GPU_CLASS,
    H100,
    claim,
    class_,
    codes,
    exactly,
    findings,
    gpu,
    only,
    selecting,
    slice_,
)

D = "device.attributes['gpu.dragoon.dev']"
CAPACITY = "device.capacity['gpu.dragoon.dev']"


def cluster(*devices: object) -> ClusterSnapshot:
    return ClusterSnapshot.of([GPU_CLASS, slice_(*devices)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "also"),
    [
        (f"{D}.productName.contains('H200')", "GH200"),
        (f"{D}.productName.lowerAscii().matches('^.*h200.*$')", "GH200"),
        (f"{D}.productName.contains('A10')", "A100"),
        (f"{D}.productName.contains('L40')", "L40S"),
        (
            f"{D}.productName.contains('B200') && {CAPACITY}.memory.isGreaterThan(quantity('0'))",
            "GB200",
        ),
    ],
)
def test_c11_a_part_of_a_name_that_other_products_have_is_told(text: str, also: str) -> None:
    found = only(findings(selecting(text)))
    assert found.code == "DRG409"
    assert also in found.found
    program = compile_selector(found.instead)
    matched = [
        name
        for name in PRODUCTS
        if program.evaluate(
            device_view(
                "gpu.dragoon.dev",
                {
                    "attributes": {"productName": {"string": name}},
                    "capacity": {"memory": {"value": "1Gi"}},
                },
            )
        )
    ]
    assert matched
    assert not any(also in name.split() or also in name for name in matched)


@pytest.mark.parametrize("word", ["H100", "GH200", "V100", "4090", "NVIDIA"])
def test_c11_a_part_that_only_one_model_has_is_no_finding(word: str) -> None:
    assert findings(selecting(f"{D}.productName.contains('{word}')")) == ()


def test_80_gi_against_an_80_gb_card_offers_what_was_tried_on_it() -> None:
    text = f"{CAPACITY}.memory.compareTo(quantity('80Gi')) >= 0"
    found = only(findings(selecting(text), snapshot=cluster(H100)))
    assert (found.code, found.severity) == ("DRG410", "warning")
    assert "79.65 Gi" in found.found
    assert found.instead == text.replace("80Gi", "79Gi")
    assert findings(selecting(text)) == ()


@pytest.mark.parametrize(
    ("size", "wanted"), [("81559Mi", "79Gi"), ("81559Mi", "120Gi"), ("40960Mi", "40Gi")]
)
def test_a_size_that_is_right_or_far_away_is_no_finding(size: str, wanted: str) -> None:
    text = f"{CAPACITY}.memory.compareTo(quantity('{wanted}')) >= 0"
    assert findings(selecting(text), snapshot=cluster(gpu("g", "x", size))) == ()


def test_80_gi_of_a_share_is_told_too() -> None:
    shared = {**H100, "allowMultipleAllocations": True}
    wish = exactly(class_name="shared.dragoon.dev", capacity={"requests": {"memory": "80Gi"}})
    found = only(
        findings(
            claim(wish),
            snapshot=ClusterSnapshot.of(
                [class_("shared.dragoon.dev", "device.allowMultipleAllocations"), slice_(shared)]
            ),
        )
    )
    assert (found.code, found.instead) == ("DRG410", "79Gi")
    assert found.path.endswith("exactly.capacity.requests.memory")


@pytest.mark.parametrize(
    ("text", "better"),
    [
        (
            f"{CAPACITY}.memory >= quantity('40Gi')",
            f"{CAPACITY}.memory.compareTo(quantity('40Gi')) >= 0",
        ),
        (f"{CAPACITY}.memory >= '40Gi'", f"{CAPACITY}.memory.compareTo(quantity('40Gi')) >= 0"),
        (
            f"{D}.driverVersion > semver('580.0.0')",
            f"{D}.driverVersion.compareTo(semver('580.0.0')) > 0",
        ),
        (f"{D}.productName.contain('x')", f"{D}.productName.contains('x')"),
        (f"{D}.productName = 'x'", f"{D}.productName == 'x'"),
        (f"{CAPACITY}.productName == 'x'", f"{D}.productName == 'x'"),
        ("device.nme == 'x'", ""),
        ("device.driver ==", ""),
    ],
)
def test_c38_what_does_not_compile_is_shown_corrected_where_that_is_known(
    text: str, better: str
) -> None:
    found = findings(selecting(text))[0]
    assert (found.code, found.instead) == ("DRG401", better)
    assert "column" in found.found


def test_c38_an_expression_longer_than_10_kib_is_an_error() -> None:
    found = only(findings(selecting(f"device.driver == '{'x' * 10_240}'")))
    assert found.code == "DRG401"
    assert len(found.found) < 2000


def test_c38_an_expression_that_runs_into_the_cost_limit_is_an_error_where_a_device_shows_it() -> (
    None
):
    digits = "[0,1,2,3,4,5,6,7,8,9]"
    text = "true"
    for name in "abcdefg":
        text = f"{digits}.all({name}, {text})"
    found = only(findings(selecting(text), snapshot=cluster(H100)))
    assert (found.code, found.severity) == ("DRG412", "error")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{D}.nvlinkBandwidth > 100", "DRG406"),
        (f"{D}.?nvlinkBandwidth.orValue(0) > 100", None),
        (f"has({D}.nvlinkBandwidth) && {D}.nvlinkBandwidth > 100", None),
        (f"{D}.nvlinkBandwidth > 100 && has({D}.nvlinkBandwidth)", None),
        (f"has({D}.nvlinkBandwidth) || {D}.nvlinkBandwidth > 100", "DRG406"),
        (f"!has({D}.nvlinkBandwidth) || {D}.nvlinkBandwidth > 100", None),
        (f"has({D}.nvlinkBandwidth) ? {D}.nvlinkBandwidth > 100 : false", None),
        (f"cel.bind(a, {D}, has(a.nvlinkBandwidth) && a.nvlinkBandwidth > 1)", None),
        (f"cel.bind(a, {D}, a.nvlinkBandwidth > 1)", "DRG406"),
        ("device.attributes['resource.kubernetes.io'].numaNode == 0", "DRG406"),
        ("device.attributes['resource.kubernetes.io'].pciBusID == 'x'", None),
        (f"{D}.profile == '1g.5gb'", "DRG404"),
        (f"{D}.numaNode == 0", "DRG404"),
        (f"{CAPACITY}.productName.asInteger() == 1", "DRG403"),
        (f"{D}.?modell.orValue('') == 'x'", "DRG413"),
        ("device.attributes['dra.net'].rdma", "DRG405"),
    ],
)
def test_c38_reads_are_judged_by_what_devices_of_the_class_have(
    text: str, code: str | None
) -> None:
    assert codes(findings(selecting(text))) == ([] if code is None else [code])


@pytest.mark.parametrize(
    "text",
    [
        f"{D}.nvlinkBandwidth > 100 || {D}.type == 'x'",
        f"{D}.type == 'gpu' && {D}.nvlinkBandwidth > 100",
        f"{D}['nvlinkBandwidth'] > 100",
        f"{D}.type == 'x' ? false : {D}.nvlinkBandwidth > 100",
        f"!({D}.nvlinkBandwidth > 100)",
        f"cel.bind(a, {D}, a.nvlinkBandwidth > 1)",
    ],
)
def test_c38_the_guarded_form_never_fails_on_a_device_without_it(text: str) -> None:
    found = next(one for one in findings(selecting(text)) if one.code == "DRG406")
    guarded = compile_selector(found.instead)
    with_it = device_view("gpu.dragoon.dev", gpu("g", "x", "1Gi", nvlinkBandwidth=200))
    assert guarded.evaluate(device_view("gpu.dragoon.dev", H100)) in {True, False}
    assert guarded.evaluate(with_it) == compile_selector(text).evaluate(with_it)


def test_c38_a_failure_on_one_device_of_the_cluster_is_told_with_its_name() -> None:
    text = f"{D}.architecture == 'Hopper'"
    odd = gpu("odd", "x", "1Gi")
    fine = gpu("fine", "x", "1Gi", architecture="Hopper")
    found = only(findings(selecting(text), snapshot=cluster(fine, odd)))
    assert (found.code, found.severity) == ("DRG407", "error")
    assert "gpu.dragoon.dev/n/gpu/odd" in found.found
    assert found.instead == f"has({D}.architecture) && {text}"


def test_devices_that_the_class_does_not_let_through_are_not_looked_at() -> None:
    other = slice_({"name": "nic"}, driver="dra.net", name="nics")
    known = ClusterSnapshot.of([GPU_CLASS, slice_(H100), other])
    assert findings(selecting(f"{D}.type == 'gpu'"), snapshot=known) == ()


def test_a_class_reads_attributes_after_a_test_of_the_driver() -> None:
    risky = only(findings(class_("mine", f"{D}.type == 'gpu'")))
    assert risky.code == "DRG411"
    assert findings(class_("mine", risky.instead)) == ()


def test_a_class_for_mig_devices_may_read_the_profile() -> None:
    text = f"device.driver == 'gpu.dragoon.dev' && {D}.type == 'mig' && {D}.profile == '1g.5gb'"
    assert findings(class_("mine", text)) == ()
    without = text.replace(f" && {D}.type == 'mig'", "")
    assert codes(findings(class_("mine", without))) == ["DRG406"]


def test_another_drivers_claims_are_left_alone() -> None:
    text = "device.attributes['dra.net'].rdma && device.attributes['dra.net'].index < 2"
    assert findings(selecting(text, class_name="dra.net")) == ()


def test_a_near_domain_is_told_for_any_class() -> None:
    text = "device.attributes['gpu.dragon.dev'].type == 'gpu'"
    assert codes(findings(selecting(text, class_name="mine"))) == ["DRG405"]


def test_reads_know_map_domain_and_name_in_every_notation() -> None:
    found = reads(
        "cel.bind(m, device.capacity['d'], m.a.sign() == 1) && device.attributes['e']['b'] == 1"
        " && device.attributes[?'f'].?c.orValue(1) == 1"
    )
    assert [read.key for read in found.reads] == [
        ("capacity", "d", "a"),
        ("attributes", "e", "b"),
        ("attributes", "f", "c"),
    ]
    assert [read.guarded for read in found.reads] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # As kube-apiserver 1.37.2 answers a create.
        (
            "device.attributes['gpu.dragoon.dev'].?productName.orValue('').contains('H100')",
            ["DRG414"],
        ),
        (
            (
                "'productName' in device.attributes['gpu.dragoon.dev'] && "
                "device.attributes['gpu.dragoon.dev'].productName.contains('H100')"
            ),
            [],
        ),
    ],
)
def test_a_selector_that_the_api_server_refuses_for_its_cost_is_an_error(
    text: str, found: list[str]
) -> None:
    assert codes(findings(selecting(text))) == found
