"""ip() and cidr(), with their methods.

Source: k8s.io/apiserver 0.37 `cel/library/ip.go`, `cidr.go`.
"""

from typing import Final

from dragoon.cel.addresses import Address, Network, parse_address, parse_network
from dragoon.cel.functions import Library, accepts, function, method, translated
from dragoon.cel.types import ADDRESS, BOOL, INT, NETWORK, STRING


def _is_canonical(text: str) -> bool:
    return str(parse_address(text)) == text


def _contains_text(network: Network, text: str) -> bool:
    return network.contains(parse_address(text))


def _contains_network_text(network: Network, text: str) -> bool:
    return network.contains_network(parse_network(text))


def _tests() -> Library:
    tests = {
        "isUnspecified": Address.is_unspecified,
        "isLoopback": Address.is_loopback,
        "isLinkLocalMulticast": Address.is_link_local_multicast,
        "isLinkLocalUnicast": Address.is_link_local_unicast,
        "isGlobalUnicast": Address.is_global_unicast,
    }
    return {name: (method(test.__get__, ADDRESS, result=BOOL),) for name, test in tests.items()}


FUNCTIONS: Final[Library] = {
    **_tests(),
    "ip": (
        function(translated(parse_address), STRING, result=ADDRESS),
        method(lambda network: network.address, NETWORK, result=ADDRESS),
    ),
    "isIP": (function(accepts(parse_address), STRING, result=BOOL),),
    "ip.isCanonical": (function(translated(_is_canonical), STRING, result=BOOL),),
    "family": (method(lambda address: address.version, ADDRESS, result=INT),),
    "cidr": (function(translated(parse_network), STRING, result=NETWORK),),
    "isCIDR": (function(accepts(parse_network), STRING, result=BOOL),),
    "containsIP": (
        method(translated(_contains_text), NETWORK, STRING, result=BOOL),
        method(Network.contains, NETWORK, ADDRESS, result=BOOL),
    ),
    "containsCIDR": (
        method(translated(_contains_network_text), NETWORK, STRING, result=BOOL),
        method(Network.contains_network, NETWORK, NETWORK, result=BOOL),
    ),
    "prefixLength": (method(lambda network: network.length, NETWORK, result=INT),),
    "masked": (method(Network.masked, NETWORK, result=NETWORK),),
    "string": (
        function(str, ADDRESS, result=STRING),
        function(str, NETWORK, result=STRING),
    ),
}
