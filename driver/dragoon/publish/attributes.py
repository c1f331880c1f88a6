"""What a device says about itself in a ResourceSlice: attributes and the size of its memory.

One table says for each attribute its name, type, unit, meaning, on which forms it stands and when
it is absent; the code reads it, and docs/attributes.md is made from it (`attribute_reference`).
Names without a domain stand under the driver's own name in CEL. An attribute that the API would
refuse is left out and told, nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dragoon import semver
from dragoon.api import device_validation, names
from dragoon.api.enforcement import NodeEnforcement, Strength
from dragoon.api.finding import Finding
from dragoon.api.forms import Form
from dragoon.errors import InvalidInputError
from dragoon.gpu.model import Gpu, Inventory, MigProfile
from dragoon.gpu.topology import link_bandwidth
from dragoon.quantity import Format, Quantity

UUID: Final = "uuid"
DRIVER_VERSION: Final = "driverVersion"
SIMULATED: Final = "simulated"
FABRIC_CLIQUE: Final = "fabricClique"
NVLINK_DOMAIN: Final = "nvlinkDomain"
TYPE: Final = "type"
PRODUCT: Final = "productName"
PROFILE: Final = "profile"
PARENT_UUID: Final = "parentUUID"
MEMORY_ENFORCEMENT: Final = "memoryEnforcement"
COMPUTE_ENFORCEMENT: Final = "computeEnforcement"
TIERS: Final = "enforcementTiers"
MEMORY: Final = "memory"
CORES: Final = "cores"

TYPE_GPU: Final = "gpu"
TYPE_SHARED: Final = "shared"
TYPE_MIG: Final = "mig"
TYPE_LOST: Final = "lost"
"""A card that answers nothing and was never seen working: no class selects it."""

_TYPES: Final = {Form.WHOLE: TYPE_GPU, Form.SHARED: TYPE_SHARED, Form.MIG: TYPE_MIG}
FORMS: Final = {name: form for form, name in _TYPES.items()}
"""The form of a device by its attribute `type`."""
_ALL: Final = tuple(Form)
_WHOLE: Final = (Form.WHOLE,)
_SHARED: Final = (Form.SHARED,)
_MIG: Final = (Form.MIG,)

Kind = Literal["string", "version", "int", "bool"]
Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that an attribute may be read from.

    profile and instance_uuid: of a MIG device; the UUID only where the instance is there already.
    enforcement: of a shared GPU.
    """

    gpu: Gpu
    inventory: Inventory
    nvlink_domain: str | None = None
    form: Form = Form.WHOLE
    profile: MigProfile | None = None
    instance_uuid: str | None = None
    enforcement: NodeEnforcement | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One line of the table. read answers None where the attribute is absent.

    forms: on which devices it can stand.
    """

    name: str
    kind: Kind
    meaning: str
    absent: str
    read: Callable[[Facts], str | int | bool | None]
    unit: str = ""
    forms: tuple[Form, ...] = _ALL


def describe(facts: Facts) -> tuple[dict[str, Raw], tuple[Finding, ...]]:
    """The attributes of a device in the API's form, and what had to be left out of them."""
    said = {one.name: (one.kind, one.read(facts)) for one in ATTRIBUTES if facts.form in one.forms}
    return valid({name: {k: v} for name, (k, v) in said.items() if v is not None})


def memory(size: int | None) -> dict[str, Raw]:
    """The capacity of a device with so many bytes; none where that is not known."""
    if not size or size < 0:
        return {}
    return {MEMORY: {"value": str(Quantity(size, format=Format.BINARY))}}


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


def _strength(facts: Facts) -> Strength | None:
    return facts.enforcement.strength if facts.enforcement else None


ATTRIBUTES: Final = (
    Attribute(
        TYPE,
        "string",
        f"The form of the device: `{TYPE_GPU}` is a whole GPU, `{TYPE_SHARED}` a GPU of which "
        f"claims get shares, `{TYPE_MIG}` a MIG instance. `{TYPE_LOST}` is a card that answers "
        "nothing and that this driver never saw working.",
        "never",
        lambda f: _TYPES[f.form],
    ),
    Attribute(
        UUID,
        "string",
        "The GPU's UUID, `GPU-…`; of a MIG instance its own, `MIG-…`.",
        "the device is `lost` and its UUID is not known, or the MIG instance is made for its claim",
        lambda f: f.instance_uuid if f.form is Form.MIG else f.gpu.uuid,
    ),
    Attribute(
        PARENT_UUID,
        "string",
        "The UUID of the GPU that is divided: for MIG instances of one card.",
        "never",
        lambda f: f.gpu.uuid,
        forms=_MIG,
    ),
    Attribute(
        PROFILE,
        "string",
        "The MIG profile as the card calls it, `1g.10gb`. Names differ between cards: prefer "
        "capacity.",
        "never",
        lambda f: f.profile.name if f.profile else None,
        forms=_MIG,
    ),
    Attribute(
        MEMORY_ENFORCEMENT,
        "string",
        "What holds a share to its memory by default: `hard` (the driver), `intercepted` (a "
        "library in the container) or `none`.",
        "never",
        lambda f: s.memory.value if (s := _strength(f)) else None,
        forms=_SHARED,
    ),
    Attribute(
        COMPUTE_ENFORCEMENT,
        "string",
        "What holds a share to its `cores` by default: `best-effort` or `none`.",
        "never",
        lambda f: s.compute.value if (s := _strength(f)) else None,
        forms=_SHARED,
    ),
    Attribute(
        TIERS,
        "string",
        "The enforcement tiers of the node, the default first, with commas: what a claim's "
        "configuration can ask for here.",
        "never",
        lambda f: ",".join(f.enforcement.tiers) if f.enforcement else None,
        forms=_SHARED,
    ),
    Attribute(
        PRODUCT,
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
        DRIVER_VERSION,
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
        forms=_WHOLE,
    ),
    Attribute(
        "nvlinkBandwidth",
        "int",
        "What all NVLinks of the GPU that are up carry together in one direction.",
        "no link is up, or the driver does not tell the speed of each",
        lambda f: link_bandwidth(f.gpu),
        unit="GB/s",
        forms=_WHOLE,
    ),
    Attribute(
        FABRIC_CLIQUE,
        "string",
        "`<cluster UUID>.<clique>` of the NVLink fabric that spans nodes. GPUs of different nodes "
        "with the same value reach each other by NVLink.",
        "the GPU is not, or not yet, or without success registered with a fabric",
        _fabric_clique,
        forms=_WHOLE,
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
