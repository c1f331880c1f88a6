"""What a whole GPU says about itself in a ResourceSlice: attributes and capacity.

One table says for each attribute its name, type, unit, meaning and when it is absent; the code
reads it, and docs/attributes.md is made from it. Names without a domain stand under the driver's
own name in CEL. An attribute that the API would refuse is left out and told, nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dragoon import semver
from dragoon.api import device_validation, names
from dragoon.api.finding import Finding
from dragoon.errors import InvalidInputError
from dragoon.gpu.model import Gpu, Inventory
from dragoon.gpu.topology import link_bandwidth
from dragoon.quantity import Format, Quantity

UUID: Final = "uuid"
SIMULATED: Final = "simulated"
FABRIC_CLIQUE: Final = "fabricClique"
NVLINK_DOMAIN: Final = "nvlinkDomain"
TYPE: Final = "type"
MEMORY: Final = "memory"

TYPE_GPU: Final = "gpu"
TYPE_LOST: Final = "lost"
"""A card that answers nothing and was never seen working: no class selects it."""

Kind = Literal["string", "version", "int", "bool"]
Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that an attribute may be read from."""

    gpu: Gpu
    inventory: Inventory
    nvlink_domain: str | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the table. read answers None where the attribute is absent."""

    name: str
    kind: Kind
    meaning: str
    absent: str
    read: Callable[[Facts], str | int | bool | None]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """The raw maps `attributes` and `capacity` of a device, and what was left out of them."""

    attributes: dict[str, Raw]
    capacity: dict[str, Raw]
    left_out: tuple[Finding, ...] = ()


def describe(facts: Facts) -> Described:
    """The attributes and the capacity of a whole GPU."""
    said = {attribute.name: (attribute.kind, attribute.read(facts)) for attribute in ATTRIBUTES}
    attributes, left_out = valid({name: {k: v} for name, (k, v) in said.items() if v is not None})
    size = facts.gpu.memory_bytes or 0
    capacity = {MEMORY: {"value": str(Quantity(size, format=Format.BINARY))}} if size > 0 else {}
    return Described(attributes, capacity, left_out)


def valid(attributes: Mapping[str, Raw]) -> tuple[dict[str, Raw], tuple[Finding, ...]]:
    """The attributes that the API would take, and what is wrong with the others."""
    findings = {
        name: tuple(device_validation.check_attribute(name, value, name))
        for name, value in attributes.items()
    }
    kept = {name: value for name, value in attributes.items() if not findings[name]}
    return kept, tuple(finding for found in findings.values() for finding in found)


def _version(pair: tuple[int, int] | None) -> str | None:
    return None if pair is None else f"{pair[0]}.{pair[1]}.0"


def _driver_version(facts: Facts) -> str | None:
    """Normalised (580.159.04 is 580.159.4); what cannot be is given as it is, and refused."""
    text = facts.inventory.driver_version
    if text is None:
        return None
    try:
        return str(semver.parse_lenient(text))
    except InvalidInputError:
        return text


def _fabric_clique(facts: Facts) -> str | None:
    fabric = facts.gpu.fabric
    if fabric.cluster_uuid is None or fabric.clique_id is None:
        return None
    return f"{fabric.cluster_uuid}.{fabric.clique_id}"


def _numa_node(facts: Facts) -> int | None:
    node = facts.gpu.numa_node
    return node if node is not None and node >= 0 else None


ATTRIBUTES: Final = (
    Attribute(
        TYPE,
        "string",
        f"The form of the device: `{TYPE_GPU}` is a whole GPU. `{TYPE_LOST}` is a card that "
        "answers nothing and that this driver never saw working.",
        "never",
        lambda _: TYPE_GPU,
    ),
    Attribute(
        UUID,
        "string",
        "The GPU's UUID, `GPU-…`.",
        "the device is `lost` and its UUID is not known",
        lambda f: f.gpu.uuid,
    ),
    Attribute(
        "productName",
        "string",
        "The marketing name. The same board has other names under other driver versions, and "
        "`contains('H200')` also finds GH200: prefer capacity, architecture or compute capability.",
        "the driver does not tell it, or it is longer than 64 bytes",
        lambda f: f.gpu.product,
    ),
    Attribute(
        "brand", "string", "The brand.", "the driver does not tell it", lambda f: f.gpu.brand
    ),
    Attribute(
        "architecture",
        "string",
        "The architecture, such as `Hopper`.",
        "the driver does not tell it",
        lambda f: f.gpu.architecture,
    ),
    Attribute(
        "cudaComputeCapability",
        "version",
        "The CUDA compute capability: `9.0.0` is 9.0.",
        "the driver does not tell it",
        lambda f: _version(f.gpu.compute_capability),
    ),
    Attribute(
        "driverVersion",
        "version",
        "The version of the NVIDIA driver, without leading zeros: `580.159.4` is 580.159.04.",
        "the driver does not tell it, or it does not have one to three numeric parts",
        _driver_version,
    ),
    Attribute(
        "cudaDriverVersion",
        "version",
        "The newest CUDA version that the driver supports: `13.0.0` is 13.0.",
        "the driver does not tell it",
        lambda f: _version(f.inventory.cuda_version),
    ),
    Attribute(
        SIMULATED,
        "bool",
        "`true`: no hardware stands behind the device. Only the class `sim.dragoon.dev` takes it.",
        "the GPU is real",
        lambda f: f.inventory.simulated or None,
    ),
    Attribute(
        NVLINK_DOMAIN,
        "string",
        "Names a set of GPUs of this node in which every pair is linked by NVLinks that are up. "
        "Unique in the cluster; stays when another member drops out. Made for `matchAttribute`; "
        "the text itself means nothing.",
        "the GPU has no such partner",
        lambda f: f.nvlink_domain,
    ),
    Attribute(
        "nvlinkBandwidth",
        "int",
        "What all NVLinks of the GPU that are up carry together in one direction.",
        "no link is up, or the driver does not tell the speed of each",
        lambda f: link_bandwidth(f.gpu),
        unit="GB/s",
    ),
    Attribute(
        FABRIC_CLIQUE,
        "string",
        "`<cluster UUID>.<clique>` of the NVLink fabric that spans nodes. GPUs of different nodes "
        "with the same value reach each other by NVLink.",
        "the GPU is not, or not yet, or without success registered with a fabric",
        _fabric_clique,
    ),
    Attribute(
        names.PCI_BUS_ID,
        "string",
        "The PCI address, `0000:65:00.0`.",
        "never",
        lambda f: str(f.gpu.address),
    ),
    Attribute(
        names.PCIE_ROOT,
        "string",
        "The PCIe root complex, `pci0000:64`: for a GPU and a NIC below the same root.",
        "the kernel does not tell it",
        lambda f: f.gpu.pcie_root,
    ),
    Attribute(
        names.NUMA_NODE,
        "int",
        "The NUMA node of the CPUs next to the GPU; never the node of the GPU's own memory.",
        "the kernel does not tell it (it says -1)",
        _numa_node,
    ),
)


_MEMORY_MEANING: Final = "The GPU's memory."
_MEMORY_ABSENT: Final = "the driver does not tell it, as on chips that share the host's memory"


def reference() -> str:
    """docs/attributes.md, made from the table."""
    lines = [
        "# Attributes",
        "",
        "What each device of Dragoon says about itself in its ResourceSlice. Made from",
        "`publish/attributes.py`; a test compares them.",
        "",
        "In a selector an attribute without a domain is read under the driver's name:",
        f'`device.attributes["{names.DRIVER_NAME}"].productName`. An attribute with a domain is read',
        'under its own: `device.attributes["resource.kubernetes.io"].numaNode`.',
        "",
        "**Reading an absent attribute is an error that stops the scheduling of the whole pod**, not a",
        "device that does not match. Guard what may be absent:",
        f'`device.attributes["{names.DRIVER_NAME}"].?nvlinkBandwidth.orValue(0) >= 400`.',
        "",
        "| name | type | unit | meaning | absent when |",
        "|---|---|---|---|---|",
    ]
    lines.extend(
        f"| `{a.name}` | {a.kind} | {a.unit or '-'} | {a.meaning} | {a.absent} |"
        for a in ATTRIBUTES
    )
    lines += [
        "",
        "## Capacity",
        "",
        "| name | unit | meaning | absent when |",
        "|---|---|---|---|",
        f"| `{MEMORY}` | bytes, as a quantity | {_MEMORY_MEANING} | {_MEMORY_ABSENT} |",
        "",
        "A request for `memory`, or a guarded selector on it, does not match a device whose size is",
        f'unknown: `"{MEMORY}" in device.capacity["{names.DRIVER_NAME}"] && …`.',
        "",
        "## Lost cards",
        "",
        "A card that answers nothing stays published under its name with the taint",
        f"`{names.TAINT_LOST}` (NoSchedule) and the attributes it was last seen with.",
        "",
    ]
    return "\n".join(lines)
