"""Opaque configuration: strict decoding, which block counts, and what users got wrong (case C41)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dragoon.api import opaque_config
from dragoon.api.claims import AllocatedDevice
from dragoon.api.forms import Form
from dragoon.api.opaque_config import (
    API_VERSION,
    Block,
    GpuConfig,
    MigConfig,
    Priority,
    SharedGpuConfig,
    ShareTier,
    TimeSlice,
    blocks,
    check_forms,
    decode,
    for_device,
    foreign,
)
from dragoon.errors import InvalidInputError

DRIVER = "gpu.dragoon.dev"
DOCS = Path(__file__).parents[3] / "docs"


def parameters(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, **fields}


def entry(found: Any, *requests: str, source: str = "FromClaim", driver: str = DRIVER) -> Any:
    opaque = {"driver": driver, "parameters": found}
    return {"source": source, "requests": list(requests), "opaque": opaque}


def test_every_field_of_every_kind_is_read() -> None:
    assert decode(parameters("GpuConfig", timeSlice="Long"), "p") == GpuConfig(
        time_slice=TimeSlice.LONG
    )
    assert decode(
        parameters("SharedGpuConfig", tier="hami", priority="High"), "p"
    ) == SharedGpuConfig(tier=ShareTier.HAMI, priority=Priority.HIGH)
    assert decode(parameters("MigConfig"), "p") == MigConfig()


def test_what_is_left_out_is_nothing() -> None:
    assert decode(parameters("GpuConfig"), "p") == GpuConfig()
    assert decode(parameters("SharedGpuConfig"), "p") == SharedGpuConfig()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (None, "p: found None, allowed is an object"),
        ([1], r"p: found \[1\], allowed is an object"),
        ({}, f"p.apiVersion: found nothing, allowed is {API_VERSION}"),
        ({"apiVersion": API_VERSION}, "p.kind: found nothing, allowed are GpuConfig, Shared"),
        (parameters("Gpuconfig"), r"p.kind: found 'Gpuconfig'.*did you mean GpuConfig\?"),
        (parameters("MpsConfig"), "p.kind: found 'MpsConfig', allowed are GpuConfig, "),
        (
            {"apiVersion": "gpu.dragoon.dev/v1", "kind": "GpuConfig"},
            r"p.apiVersion: found 'gpu.dragoon.dev/v1', allowed is .*v1alpha1.*did you mean",
        ),
        (
            parameters("SharedGpuConfig", tier=7),
            "p.tier: found 7, allowed are cgroup, hami, none",
        ),
        (
            parameters("SharedGpuConfig", tier={"a": "b"}),
            "p.tier: found {'a': 'b'}, allowed are cgroup, hami, none",
        ),
        (
            parameters("MigConfig", profile="1g.10gb"),
            "p.profile: unknown field, allowed are apiVersion, kind$",
        ),
        (
            parameters("SharedGpuConfig", timeSlice="Long"),
            "p.timeSlice: unknown field, allowed are apiVersion, kind, tier, priority",
        ),
    ],
)
def test_what_is_not_understood_is_refused_with_path_found_and_allowed(
    wrong: Any, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told) as caught:
        decode(wrong, "p")
    assert not caught.value.retryable


def test_a_value_of_any_length_leaves_the_message_readable() -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode(parameters("GpuConfig", timeSlice="x" * 5000), "p")
    assert len(str(caught.value)) < 300


M15 = """
- opaque:
    driver: gpu.dragoon.dev
    parameters: {apiVersion: gpu.dragoon.dev/v1alpha1, kind: GpuConfig, timeSlic: Long}
- opaque:
    driver: gpu.dragoon.dev
    parameters: {apiVersion: gpu.dragoon.dev/v1alpha1, kind: SharedGpuConfig, tier: HAMI}
- opaque:
    driver: gpu.dragoon.dev
    parameters: {apiVersion: gpu.dragoon.dev/v1alpha1, kind: MigConfig}
- opaque:
    driver: gpu.example.com
    parameters: {anything: [1, 2]}
"""


@pytest.mark.parametrize(
    ("number", "told"),
    [
        # 1: a misspelt field. 2: an accepted word in the wrong case.
        (0, r"\.parameters\.timeSlic: unknown field, .*timeSlice.*did you mean timeSlice\?"),
        (1, r"\.parameters\.tier: found 'HAMI', allowed are cgroup, hami, none .did you mean hami"),
    ],
)
def test_c41_m15_a_misspelt_field_or_value_is_refused_with_what_was_meant(
    number: int, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        blocks([yaml.safe_load(M15)[number]], DRIVER)


def test_c41_m15_a_kind_for_mig_on_a_whole_gpu_is_refused_and_both_are_named() -> None:
    found = blocks([yaml.safe_load(M15)[2]], DRIVER)
    with pytest.raises(InvalidInputError, match="MigConfig, which is for a MIG") as caught:
        check_forms(found, [("gpu", Form.WHOLE)])
    assert "request gpu got a whole GPU" in str(caught.value)
    assert "allowed is GpuConfig" in str(caught.value)


def test_c41_m15_blocks_of_other_drivers_are_ignored_whatever_they_hold() -> None:
    assert blocks([yaml.safe_load(M15)[3], {"opaque": None}, {}], DRIVER) == ()


def test_class_config_comes_before_claim_config_and_the_last_wins() -> None:
    config = [
        entry(parameters("GpuConfig", timeSlice="Short")),
        entry(parameters("GpuConfig", timeSlice="Long"), source="FromClass"),
    ]
    found = blocks(config, DRIVER)
    assert for_device(found, "gpu", Form.WHOLE) == GpuConfig(time_slice=TimeSlice.SHORT)
    assert for_device(found[:1], "gpu", Form.WHOLE) == GpuConfig(time_slice=TimeSlice.LONG)
    twice = blocks([*config, entry(parameters("GpuConfig"), "gpu")], DRIVER)
    assert for_device(twice, "gpu", Form.WHOLE) == GpuConfig(), "as a whole, not field by field"
    assert for_device(twice, "other", Form.WHOLE) == GpuConfig(time_slice=TimeSlice.SHORT)


def test_the_path_of_a_block_is_where_it_stands_in_the_allocation() -> None:
    config = [
        entry(parameters("MigConfig")),
        entry({"kind": "x"}, driver="other"),
        entry(parameters("MigConfig"), source="FromClass"),
    ]
    assert [one.path for one in blocks(config, DRIVER)] == [
        "allocation.devices.config[2].opaque.parameters",
        "allocation.devices.config[0].opaque.parameters",
    ]


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        ((), {"gpu", "gpu/large", "gpu/small", "side"}),
        (("gpu",), {"gpu", "gpu/large", "gpu/small"}),
        (("gpu/small",), {"gpu/small"}),
        (("side", "gpu/large"), {"side", "gpu/large"}),
    ],
)
def test_c42_a_scope_covers_a_request_and_its_subrequests(
    scope: tuple[str, ...], covered: set[str]
) -> None:
    block = Block("p", scope, GpuConfig())
    every = ("gpu", "gpu/large", "gpu/small", "side")
    assert {one for one in every if block.covers(one)} == covered


@pytest.mark.parametrize(
    ("scope", "devices"),
    [
        (("gpu",), [("gpu", Form.SHARED)]),
        (("gpu/a",), [("gpu/a", Form.SHARED)]),
        ((), [("gpu", Form.SHARED), ("side", Form.WHOLE)]),
    ],
)
def test_a_block_for_another_form_of_device_is_refused(
    scope: tuple[str, ...], devices: list[tuple[str, Form]]
) -> None:
    with pytest.raises(InvalidInputError, match="name the requests that MigConfig is for"):
        check_forms([Block("p", scope, MigConfig())], devices)


@pytest.mark.parametrize(
    ("scope", "devices"),
    [
        ((), [("gpu", Form.MIG), ("side", Form.WHOLE)]),
        (("gpu",), [("gpu/small", Form.SHARED)]),
        (("gpu/large",), [("gpu/small", Form.SHARED)]),
        (("gpu",), [("gpu/large", Form.MIG)]),
    ],
)
def test_a_block_that_fits_what_it_means_is_accepted(
    scope: tuple[str, ...], devices: list[tuple[str, Form]]
) -> None:
    check_forms([Block("p", scope, MigConfig())], devices)


def test_each_device_gets_the_config_of_its_own_form() -> None:
    found = blocks([entry(parameters("SharedGpuConfig")), entry(parameters("GpuConfig"))], DRIVER)
    assert for_device(found, "a", Form.SHARED) == SharedGpuConfig()
    assert for_device(found, "a", Form.WHOLE) == GpuConfig()
    assert for_device(found, "a", Form.MIG) is None


def test_a_block_for_another_driver_that_reaches_only_our_devices_is_told() -> None:
    mine = AllocatedDevice("gpu", DRIVER, "p", "d")
    theirs = AllocatedDevice("nic", "dra.net", "p", "d")
    other = entry({"any": 1}, driver="gpu.nvidia.com")
    assert "gpu.nvidia.com" in foreign([other], [mine], DRIVER)[0]
    assert foreign([entry({}, "nic", driver="gpu.nvidia.com")], [mine, theirs], DRIVER) == ()
    assert foreign([entry({}, driver="dra.net")], [mine, theirs], DRIVER) == ()
    assert foreign([entry({}, "gpu", driver="dra.net")], [mine, theirs], DRIVER)
    assert foreign([entry(parameters("GpuConfig"))], [mine], DRIVER) == ()


def test_the_schema_in_the_documentation_is_the_decoders() -> None:
    text = (DOCS / "opaque-config.md").read_text()
    block = text.partition("```json\n")[2].partition("```")[0]
    assert json.loads(block) == opaque_config.json_schema()


def test_the_schema_allows_what_the_decoder_allows_and_nothing_else() -> None:
    schema = opaque_config.json_schema()["$defs"]
    for kind in (GpuConfig, SharedGpuConfig, MigConfig):
        fields = {one.encode_name for one in msgspec.structs.fields(kind)}
        assert schema[kind.__name__]["properties"].keys() == fields | {"kind"}
        assert schema[kind.__name__]["additionalProperties"] is False
        assert schema[kind.__name__]["required"] == ["apiVersion", "kind"]


def test_every_example_in_the_documentation_is_read() -> None:
    text = (DOCS / "opaque-config.md").read_text()
    examples = [part.partition("```")[0] for part in text.split("```yaml\n")[1:]]
    assert len(examples) >= 3
    for example in examples:
        spec = yaml.safe_load(example)["spec"]
        place = (spec.get("spec") or spec).get("devices") or spec
        assert blocks(place["config"], DRIVER)
