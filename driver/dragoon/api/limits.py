"""What names, numbers and sizes resource.k8s.io/v1 accepts.

Source: `pkg/apis/resource/validation` and `k8s.io/api/resource/v1/types.go` of 1.37.2.
Sizes of texts are bytes in UTF-8.
"""

import re
from typing import Final

DEVICES_PER_SLICE: Final = 128
DEVICES_PER_DETAILED_SLICE: Final = 64
"""The limit of a slice in which any device has taints or consumes counters."""
ATTRIBUTES_AND_CAPACITIES: Final = 32
ATTRIBUTE_BYTES: Final = 64
TAINTS_PER_DEVICE: Final = 16
COUNTER_SETS_PER_SLICE: Final = 8
COUNTERS_PER_SET: Final = 32
"""Of one set, and of what one device consumes of it."""
CONSUMED_SETS_PER_DEVICE: Final = 2
POLICY_VALUES: Final = 10

DRIVER_NAME_BYTES: Final = 63
POOL_NAME_BYTES: Final = 253
SUBDOMAIN_BYTES: Final = 253
DOMAIN_BYTES: Final = 63
IDENTIFIER_BYTES: Final = 32
LABEL_BYTES: Final = 63

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LABEL_PART: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)


def is_dns_label(text: str) -> bool:
    """A lower-case DNS label: device, request and counter names."""
    return len(text) <= LABEL_BYTES and _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str, limit: int = SUBDOMAIN_BYTES) -> bool:
    """A lower-case DNS subdomain: names of nodes and of most objects."""
    return len(text) <= limit and _SUBDOMAIN.fullmatch(text) is not None


def is_generate_name(text: str) -> bool:
    """A prefix to which the server can add its random end: a subdomain that may end in a dash."""
    return is_subdomain(text[:-1] + "a" if text.endswith("-") else text)


def is_driver_name(text: str) -> bool:
    """A DNS subdomain of at most 63 bytes; the server takes upper case with a warning."""
    return is_subdomain(text.lower(), DRIVER_NAME_BYTES)


def is_pool_name(text: str) -> bool:
    """DNS subdomains with `/` between them, 253 bytes in all."""
    return len(text) <= POOL_NAME_BYTES and all(map(is_subdomain, text.split("/")))


def is_qualified_name(text: str) -> bool:
    """The key of an attribute or a capacity: `identifier` or `domain/identifier`."""
    domain, slash, identifier = text.rpartition("/")
    if slash and not is_subdomain(domain.lower(), DOMAIN_BYTES):
        return False
    return len(identifier) <= IDENTIFIER_BYTES and _IDENTIFIER.fullmatch(identifier) is not None


def is_label_key(text: str) -> bool:
    """The key of a label or taint: `name` or `domain/name`."""
    domain, slash, name = text.rpartition("/")
    if slash and not is_subdomain(domain):
        return False
    return bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """The value of a label or taint; may be empty."""
    return not text or (len(text) <= LABEL_BYTES and _LABEL_PART.fullmatch(text) is not None)
