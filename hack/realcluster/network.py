"""Addresses and routes of the machine: what a cluster adds, and takes away again.

There is no kube-proxy. One NAT rule leads from the address of the service `kubernetes` to the API
server, so that clients in pods find it the usual way.
"""

import json
import socket
import subprocess

from realcluster import packages
from realcluster.failure import ClusterError
from realcluster.slots import Slot

_CHAINS = ("PREROUTING", "OUTPUT")


def networks() -> list[str]:
    """Every network that this machine has an address in or a route to, the default one aside."""
    addresses = [
        f"{info['local']}/{info['prefixlen']}"
        for link in json.loads(_run("ip", "-json", "-4", "addr", "show"))
        for info in link.get("addr_info", [])
        if "local" in info
    ]
    routes = [route["dst"] for route in json.loads(_run("ip", "-json", "-4", "route", "show"))]
    return addresses + [route for route in routes if route != "default"]


def machine_address() -> str | None:
    """The address that this machine shows to others; None if it has only loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing: it only asks the routing table.
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def reserve(slot: Slot, *, spare: bool) -> None:
    """Give this machine the slot's addresses: visible to all, so nobody else takes the slot."""
    for address in _addresses(slot, spare=spare):
        # /32 on loopback: reachable from pods through their own routes, from nowhere else.
        _run("ip", "addr", "replace", f"{address}/32", "dev", "lo")


def release(slot: Slot) -> None:
    """Take the slot's addresses away again."""
    for address in _addresses(slot, spare=True):
        if f"{address}/32" in networks():
            _run("ip", "addr", "del", f"{address}/32", "dev", "lo")


def open_service(slot: Slot, address: str) -> None:
    """Lead the service `kubernetes` to the API server."""
    for chain in _CHAINS:
        if not _has_rule(chain, slot, address):
            _iptables("--append", chain, *_rule(slot, address))


def close_service(slot: Slot, address: str) -> None:
    """Remove what `open_service` added."""
    for chain in _CHAINS:
        while _has_rule(chain, slot, address):
            _iptables("--delete", chain, *_rule(slot, address))


def _addresses(slot: Slot, *, spare: bool) -> list[str]:
    return [slot.service_address, *([slot.spare_address] if spare else [])]


def _rule(slot: Slot, address: str) -> list[str]:
    match = ["--destination", f"{slot.service_address}/32", "--protocol", "tcp", "--dport", "443"]
    return [*match, "--jump", "DNAT", "--to-destination", f"{address}:{slot.api_port}"]


def _has_rule(chain: str, slot: Slot, address: str) -> bool:
    command = [_program("iptables"), "--wait", "--table", "nat", "--check", chain]
    done = subprocess.run([*command, *_rule(slot, address)], capture_output=True, check=False)
    return done.returncode == 0


def _iptables(*arguments: str) -> None:
    _run("iptables", "--wait", "--table", "nat", *arguments)


def _run(program: str, *arguments: str) -> str:
    command = [_program(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def _program(name: str) -> str:
    path = packages.find(name)
    if path is None:
        raise ClusterError(f"{name} is not installed")
    return path
