"""IP addresses and networks as values, by the rules of Go's `net/netip`.

Source: k8s.io/apiserver 0.37 `cel/library/ip.go`, `cidr.go`. Zones and addresses of IPv4 mapped
into IPv6 are refused; host bits after a network's prefix are not.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from dragoon.errors import InvalidInputError

_PREFIX_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address. number: its bits as an integer; version: 4 or 6."""

    version: int
    number: int

    @property
    def bits(self) -> int:
        """How many bits such an address has."""
        return 32 if self.version == 4 else 128

    @property
    def size(self) -> int:
        """Bytes of the address: what CEL's cost model counts."""
        return self.bits // 8

    def masked(self, length: int) -> "Address":
        """The address with only its first bits kept."""
        rest = self.bits - length
        return Address(self.version, self.number >> rest << rest)

    def starts_with(self, other: "Address", length: int) -> bool:
        """Whether the first bits are those of another address of the same version."""
        return self.version == other.version and self.masked(length) == other.masked(length)

    @property
    def is_unspecified(self) -> bool:
        return self.number == 0

    @property
    def is_loopback(self) -> bool:
        return self.number >> 24 == 127 if self.version == 4 else self.number == 1

    @property
    def is_multicast(self) -> bool:
        return self.number >> 28 == 0xE if self.version == 4 else self.number >> 120 == 0xFF

    @property
    def is_link_local_multicast(self) -> bool:
        if self.version == 4:
            return self.number >> 8 == 0xE00000
        return (self.number >> 112) & 0xFF0F == 0xFF02

    @property
    def is_link_local_unicast(self) -> bool:
        return self.number >> 16 == 0xA9FE if self.version == 4 else self.number >> 118 == 0x3FA

    @property
    def is_global_unicast(self) -> bool:
        broadcast = self.version == 4 and self.number == 0xFFFFFFFF
        return not (
            broadcast
            or self.is_unspecified
            or self.is_loopback
            or self.is_multicast
            or self.is_link_local_unicast
        )

    def __str__(self) -> str:
        if self.version == 4:
            return str(ipaddress.IPv4Address(self.number))
        return ipaddress.IPv6Address(self.number).compressed


@dataclass(frozen=True, slots=True)
class Network:
    """A network in CIDR notation; the address keeps the bits after the prefix."""

    address: Address
    length: int

    @property
    def size(self) -> int:
        """Bytes that the prefix reaches into: what CEL's cost model counts."""
        return -(-self.length // 8)

    def masked(self) -> "Network":
        """The network without bits after the prefix."""
        return Network(self.address.masked(self.length), self.length)

    def contains(self, address: Address) -> bool:
        """Whether an address is in the network."""
        return address.starts_with(self.address, self.length)

    def contains_network(self, other: "Network") -> bool:
        """Whether all of another network is in this one."""
        return self.length <= other.length and self.contains(other.address)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def parse_address(text: str) -> Address:
    """An address. Raises InvalidInputError for what Kubernetes' `ip()` refuses."""
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError as error:
        raise InvalidInputError(f"IP address: found {text!r}, which is none") from error
    if isinstance(parsed, ipaddress.IPv6Address):
        if "%" in text:
            raise InvalidInputError(f"IP address: found {text!r}, a zone is not allowed")
        if parsed.ipv4_mapped is not None:
            raise InvalidInputError(f"IP address: found {text!r}, IPv4 in IPv6 is not allowed")
    return Address(parsed.version, int(parsed))


def parse_network(text: str) -> Network:
    """A network. Raises InvalidInputError for what Kubernetes' `cidr()` refuses."""
    start, slash, length = text.rpartition("/")
    if not slash or not _PREFIX_LENGTH.fullmatch(length):
        raise InvalidInputError(f"network: found {text!r}, allowed is ADDRESS/LENGTH")
    address = parse_address(start)
    if int(length) > address.bits:
        raise InvalidInputError(f"network: found length {length}, allowed are {address.bits} bits")
    return Network(address, int(length))
