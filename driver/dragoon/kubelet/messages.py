"""The versions of the DRA service, and claims and devices to and from their messages.

Source: k8s.io/kubelet v0.37.2, pkg/apis/dra/v1 and v1beta1; written down in proto/.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from dragoon.api.claims import ClaimRef
from dragoon.kubelet.wire import dra_v1_pb2, dra_v1beta1_pb2, plugin_registration_v1_pb2
from dragoon.prepare.port import PreparedDevice

PLUGIN_TYPE: Final = "DRAPlugin"
"""The type under which the kubelet knows DRA drivers among its plugins."""

REGISTRATION: Final = plugin_registration_v1_pb2.DESCRIPTOR.services_by_name["Registration"]

# The kubelet's deadlines.
GET_INFO_SECONDS: Final = 1.0
NOTIFY_SECONDS: Final = 5.0
DRA_CALL_SECONDS: Final = 45.0


@dataclass(frozen=True, slots=True)
class DraVersion:
    """One version of the service. `advertised` is what stands in PluginInfo.supported_versions."""

    advertised: str
    wire: ModuleType

    @property
    def service(self) -> Any:
        """The descriptor of the service."""
        return self.wire.DESCRIPTOR.services_by_name["DRAPlugin"]

    @property
    def has_shares(self) -> bool:
        """share_id came with v1."""
        return "share_id" in self.wire.Device.DESCRIPTOR.fields_by_name


DRA_VERSIONS: Final = (
    DraVersion("v1.DRAPlugin", dra_v1_pb2),
    DraVersion("v1beta1.DRAPlugin", dra_v1beta1_pb2),
)
"""Newest first: the kubelet takes the first of the plugin's list that it knows."""


def read_claims(request: Any) -> tuple[ClaimRef, ...]:
    """The claims of a prepare or unprepare request, as they came."""
    return tuple(ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims)


def write_claims(version: DraVersion, claims: Iterable[ClaimRef]) -> list[Any]:
    """Claims as messages of the version."""
    return [
        version.wire.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name)
        for claim in claims
    ]


def read_device(device: Any) -> PreparedDevice:
    """A prepared device from its message of either version."""
    shared = "share_id" in device.DESCRIPTOR.fields_by_name and device.HasField("share_id")
    return PreparedDevice(
        requests=tuple(device.request_names),
        pool=device.pool_name,
        device=device.device_name,
        cdi_ids=tuple(device.cdi_device_ids),
        share_id=device.share_id if shared else None,
    )


def write_device(version: DraVersion, device: PreparedDevice) -> Any:
    """A prepared device as a message of the version; without its share where there is no field."""
    message = version.wire.Device(
        request_names=device.requests,
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_ids,
    )
    if device.share_id is not None and version.has_shares:
        message.share_id = device.share_id
    return message
