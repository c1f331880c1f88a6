"""A cluster's share of ports and addresses: one number decides all of them.

Slot 3 has the ports 20300-20399 and the addresses 10.103.0.0/16. So two clusters never meet, and
everything of one can be recognised by its numbers.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from realcluster.failure import ClusterError

SLOTS = 100


@dataclass(frozen=True)
class Slot:
    """The ports and addresses of one cluster."""

    number: int

    @property
    def network(self) -> str:
        return f"10.{100 + self.number}.0.0/16"

    @property
    def services(self) -> str:
        return f"10.{100 + self.number}.0.0/24"

    @property
    def service_address(self) -> str:
        """What Kubernetes gives the service `kubernetes`: the first address of the range."""
        return f"10.{100 + self.number}.0.1"

    @property
    def spare_address(self) -> str:
        """The machine's address where it has none of its own but loopback."""
        return f"10.{100 + self.number}.255.1"

    def pods(self, node: int) -> str:
        return f"10.{100 + self.number}.{1 + node}.0/24"

    @property
    def api_port(self) -> int:
        return self._port(0)

    @property
    def etcd_port(self) -> int:
        return self._port(1)

    @property
    def etcd_peer_port(self) -> int:
        return self._port(2)

    @property
    def controller_manager_port(self) -> int:
        return self._port(3)

    @property
    def scheduler_port(self) -> int:
        return self._port(4)

    def kubelet_port(self, node: int) -> int:
        return self._port(10 + 2 * node)

    def kubelet_health_port(self, node: int) -> int:
        return self._port(11 + 2 * node)

    @property
    def kueue_webhook_port(self) -> int:
        return self._port(95)

    @property
    def kueue_health_port(self) -> int:
        return self._port(96)

    def ports(self, nodes: int) -> list[int]:
        """Every port that a cluster with so many nodes listens on."""
        per_node = [
            port(node)
            for node in range(nodes)
            for port in (self.kubelet_port, self.kubelet_health_port)
        ]
        return [self._port(offset) for offset in range(5)] + per_node

    def _port(self, offset: int) -> int:
        # Below 30000: neither node ports nor the kernel's own choices are there.
        return 20000 + 100 * self.number + offset


def choose(
    nodes: int,
    taken: Iterable[str],
    port_is_free: Callable[[int], bool] | None = None,
) -> Slot:
    """The first slot with free ports and no address in `taken`, the networks of this machine."""
    is_free = port_is_free or can_listen
    networks = [ipaddress.ip_network(text, strict=False) for text in taken]
    for number in range(SLOTS):
        slot = Slot(number)
        own = ipaddress.ip_network(slot.network)
        if any(own.overlaps(network) for network in networks):
            continue
        if all(is_free(port) for port in slot.ports(nodes)):
            return slot
    raise ClusterError(f"none of {SLOTS} slots has free ports and addresses")


def can_listen(port: int) -> bool:
    """Whether a port is free on every address."""
    with socket.socket() as probe:
        # Connections of a stopped cluster that still linger don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True
