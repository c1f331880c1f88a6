"""The DRAResourceHealth service: a stream to the kubelet that says how each device is.

Facts of Kubernetes 1.37.2: the kubelet opens the stream when
it registers us, and again 5 s after it ended; a change shows in the pod's status within about a
second; a device that is not said again within its time-out counts as unknown, and then stays so in
the pod's status until something changes. So everything is said again well within the time-out.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Final

import grpc
import structlog

from dragoon.health.reports import Board, DeviceHealth, Report, State
from dragoon.kubelet import rpc
from dragoon.kubelet.wire import dra_health_v1_pb2, dra_health_v1alpha1_pb2

_log = structlog.get_logger(__name__)

REPEAT_SECONDS: Final = 10.0
TIMEOUT_SECONDS: Final = 30
"""What the kubelet takes where nothing is said; three repeats."""
MESSAGE_BYTES: Final = 1024
"""The kubelet cuts longer messages."""
MOST_DEVICES: Final = 16384
"""The kubelet keeps no more of one driver."""


@dataclass(frozen=True, slots=True)
class HealthVersion:
    """One version of the service. `advertised` is what stands in PluginInfo.supported_versions."""

    advertised: str
    wire: ModuleType

    @property
    def service(self) -> Any:
        """The descriptor of the service."""
        return self.wire.DESCRIPTOR.services_by_name["DRAResourceHealth"]


HEALTH_VERSIONS: Final = (
    HealthVersion("v1.DRAResourceHealth", dra_health_v1_pb2),
    HealthVersion("v1alpha1.DRAResourceHealth", dra_health_v1alpha1_pb2),
)
"""Newest first. The kubelet takes its own newest: 1.37 and later v1, 1.34 to 1.36 v1alpha1."""


class HealthStream:
    """Serves a board to the kubelet. repeat: seconds after which the same is said again."""

    def __init__(self, board: Board, repeat: float = REPEAT_SECONDS) -> None:
        self._board = board
        self._repeat = repeat
        self._open = 0

    @property
    def open(self) -> int:
        """How many streams are open: that of a kubelet that is alive and has us registered."""
        return self._open

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """The handlers of every version."""
        return tuple(
            rpc.handlers(version.service, {"NodeWatchResources": partial(self._watch, version)})
            for version in HEALTH_VERSIONS
        )

    async def _watch(
        self, version: HealthVersion, _request: Any, _context: Any
    ) -> AsyncIterator[Any]:
        self._open += 1
        _log.info("the kubelet follows the health of devices", version=version.advertised)
        try:
            async with aclosing(self._board.follow(self._repeat)) as reports:
                async for report in reports:
                    yield write_report(version, report, self._board.checked())
        finally:
            self._open -= 1


def write_report(version: HealthVersion, report: Report, checked: float) -> Any:
    """A report as a message of the version. checked: Unix time."""
    response = version.wire.NodeWatchResourcesResponse()
    for device in report.devices[:MOST_DEVICES]:
        entry = response.devices.add()
        entry.device.pool_name, entry.device.device_name = report.pool, device.device
        entry.health = version.wire.HealthStatus.Value(device.state.name)
        entry.last_updated_time = int(checked)
        entry.health_check_timeout_seconds = TIMEOUT_SECONDS
        entry.message = _cut(device.message)
    return response


def read_report(version: HealthVersion, response: Any) -> Report:
    """The report in a message that has at least one device."""
    names = version.wire.HealthStatus.Name
    return Report(
        response.devices[0].device.pool_name,
        tuple(
            DeviceHealth(one.device.device_name, State[names(one.health)], one.message)
            for one in response.devices
        ),
    )


def _cut(text: str) -> str:
    """At most so many bytes of UTF-8, whole characters."""
    return text.encode()[:MESSAGE_BYTES].decode(errors="ignore")
