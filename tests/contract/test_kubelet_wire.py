"""The messages on the wire, against bytes made by hand from k8s.io/kubelet v0.37.2's numbers.

And the generated messages against proto/, so that neither is changed without the other.
"""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dragoon.kubelet.wire import (
    dra_health_v1_pb2,
    dra_health_v1alpha1_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    plugin_registration_v1_pb2,
)

PROTO = Path(__file__).resolve().parents[2] / "proto"
DRA = (dra_v1_pb2, dra_v1beta1_pb2)
HEALTH = (dra_health_v1_pb2, dra_health_v1alpha1_pb2)
ALL = (plugin_registration_v1_pb2, *DRA, *HEALTH)


def text(number: int, value: str | bytes) -> bytes:
    """A string or message field: key with wire type 2, length, content (all short here)."""
    raw = value.encode() if isinstance(value, str) else value
    assert len(raw) < 128
    return bytes([number << 3 | 2, len(raw)]) + raw


def number(field: int, value: int) -> bytes:
    """An integer, bool or enum field: key with wire type 0, a varint of one byte."""
    assert 0 <= value < 128
    return bytes([field << 3, value])


def test_plugin_info_and_registration_status_have_the_kubelets_numbers() -> None:
    wire = plugin_registration_v1_pb2
    info = wire.PluginInfo(type="T", name="n", endpoint="/e", supported_versions=["a", "b"])
    assert info.SerializeToString(deterministic=True) == (
        text(1, "T") + text(2, "n") + text(3, "/e") + text(4, "a") + text(4, "b")
    )
    status = wire.RegistrationStatus.FromString(number(1, 1) + text(2, "why"))
    assert (status.plugin_registered, status.error) == (True, "why")


@pytest.mark.parametrize("wire", DRA, ids=lambda m: m.__name__)
def test_prepare_messages_have_the_kubelets_numbers(wire: ModuleType) -> None:
    request = wire.NodePrepareResourcesRequest.FromString(
        text(1, text(1, "ns") + text(2, "uid") + text(3, "name"))
    )
    (claim,) = request.claims
    assert (claim.namespace, claim.uid, claim.name) == ("ns", "uid", "name")

    response = wire.NodePrepareResourcesResponse()
    entry = response.claims["uid"]
    entry.error = "why"
    entry.devices.add(
        request_names=["r", "s"], pool_name="p", device_name="d", cdi_device_ids=["c"]
    )
    device = text(1, "r") + text(1, "s") + text(2, "p") + text(3, "d") + text(4, "c")
    assert response.SerializeToString(deterministic=True) == text(
        1, text(1, "uid") + text(2, text(1, device) + text(2, "why"))
    )


@pytest.mark.parametrize("wire", DRA, ids=lambda m: m.__name__)
def test_unprepare_messages_have_the_kubelets_numbers(wire: ModuleType) -> None:
    request = wire.NodeUnprepareResourcesRequest.FromString(text(1, text(2, "uid")))
    assert [claim.uid for claim in request.claims] == ["uid"]
    response = wire.NodeUnprepareResourcesResponse()
    response.claims["uid"].error = "why"
    assert response.SerializeToString(deterministic=True) == text(
        1, text(1, "uid") + text(2, text(1, "why"))
    )


def test_a_share_is_field_5_of_a_v1_device_and_only_there() -> None:
    assert dra_v1_pb2.Device(share_id="s").SerializeToString() == text(5, "s")
    assert dra_v1_pb2.Device().SerializeToString() == b""
    assert "share_id" not in dra_v1beta1_pb2.Device.DESCRIPTOR.fields_by_name


@pytest.mark.parametrize("wire", HEALTH, ids=lambda m: m.__name__)
def test_health_messages_have_the_kubelets_numbers(wire: ModuleType) -> None:
    response = wire.NodeWatchResourcesResponse()
    response.devices.add(
        device={"pool_name": "p", "device_name": "d"},
        health=wire.UNHEALTHY,
        last_updated_time=3,
        health_check_timeout_seconds=4,
        message="m",
    )
    assert response.SerializeToString(deterministic=True) == text(
        1,
        text(1, text(1, "p") + text(2, "d"))
        + number(2, 2)
        + number(3, 3)
        + number(4, 4)
        + text(5, "m"),
    )


@pytest.mark.parametrize(
    ("wire", "methods"),
    [
        (
            plugin_registration_v1_pb2,
            {
                "/pluginregistration.Registration/GetInfo",
                "/pluginregistration.Registration/NotifyRegistrationStatus",
            },
        ),
        *(
            (
                wire,
                {
                    f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/NodePrepareResources",
                    f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/NodeUnprepareResources",
                },
            )
            for wire, version in zip(DRA, ("v1", "v1beta1"), strict=True)
        ),
        *(
            (wire, {f"/{version}.DRAResourceHealth/NodeWatchResources"})
            for wire, version in zip(HEALTH, ("v1", "v1alpha1"), strict=True)
        ),
    ],
)
def test_methods_have_the_kubelets_names(wire: ModuleType, methods: set[str]) -> None:
    (service,) = wire.DESCRIPTOR.services_by_name.values()
    assert {f"/{service.full_name}/{method.name}" for method in service.methods} == methods


@pytest.mark.parametrize("wire", ALL, ids=lambda m: m.__name__)
def test_the_generated_messages_are_those_of_proto(wire: ModuleType) -> None:
    source = (PROTO / Path(wire.DESCRIPTOR.name).name).read_text()
    assert re.search(rf"^package {re.escape(wire.DESCRIPTOR.package)};$", source, re.MULTILINE)
    described = {
        message.name: {(field.number, field.name, _type(field)) for field in message.fields}
        for message in wire.DESCRIPTOR.message_types_by_name.values()
    }
    assert described == _messages(source)


def test_every_proto_file_is_generated() -> None:
    assert {file.name for file in PROTO.iterdir()} == {
        Path(wire.DESCRIPTOR.name).name for wire in ALL
    }


def _messages(source: str) -> dict[str, set[tuple[int, str, str]]]:
    code = re.sub(r"//.*", "", source)
    field = re.compile(r"([\w<>, ]+?) (\w+) = (\d+);")
    return {
        name: {(int(n), field_name, kind.strip()) for kind, field_name, n in field.findall(body)}
        for name, body in re.findall(r"^message (\w+) \{(.*?)\}", code, re.MULTILINE | re.DOTALL)
    }


def _type(field: Any) -> str:
    """The type of a field as proto/ writes it."""
    names = {field.TYPE_STRING: "string", field.TYPE_BOOL: "bool", field.TYPE_INT64: "int64"}
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return f"map<string, {field.message_type.fields_by_name['value'].message_type.name}>"
    referred = field.message_type or field.enum_type
    name = referred.name if referred else names[field.type]
    if field.is_repeated:
        return f"repeated {name}"
    return f"optional {name}" if field.containing_oneof else name
