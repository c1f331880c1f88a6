"""What devices of Dragoon say about themselves, and what people call it instead.

Made from the publisher's table; what MIG and shared devices say besides is added here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

from dragoon.api import names
from dragoon.api.forms import Form
from dragoon.publish import attributes

Maps = Literal["attributes", "capacity"]

FORMS: Final = tuple(Form)
STANDARD_DOMAIN: Final = names.PCIE_ROOT.partition("/")[0]

CLASS_FORMS: Final[dict[str, Form]] = {
    names.CLASS_GPU: Form.WHOLE,
    names.CLASS_SIMULATED: Form.WHOLE,
    "mig.dragoon.dev": Form.MIG,
    "shared.dragoon.dev": Form.SHARED,
}
"""The form of the devices of each of our DeviceClasses."""

_ONLY: Final[dict[str, tuple[Form, ...]]] = {
    "profile": (Form.MIG,),
    "parentUUID": (Form.MIG,),
    "memoryEnforcement": (Form.SHARED,),
    "computeEnforcement": (Form.SHARED,),
    attributes.NVLINK_DOMAIN: (Form.WHOLE,),
    "nvlinkBandwidth": (Form.WHOLE,),
}
_ATTRIBUTES: Final = frozenset(one.name for one in attributes.ATTRIBUTES) | _ONLY.keys()
_OFTEN_ABSENT: Final = frozenset(
    (
        *(attributes.SIMULATED, attributes.NVLINK_DOMAIN, "nvlinkBandwidth"),
        *(attributes.FABRIC_CLIQUE, names.NUMA_NODE, names.PCIE_ROOT),
    )
)
"""Attributes that healthy GPUs lack too: one such GPU stops a pod whose selector reads them."""
_CAPACITY: Final[dict[str, tuple[Form, ...]]] = {attributes.MEMORY: FORMS, "cores": (Form.SHARED,)}

_OTHER_WORDS: Final = {
    **dict.fromkeys(
        ("model", "modelName", "product", "name", "gpuName", "gpu"), attributes.PRODUCT
    ),
    **dict.fromkeys(("index", "minor", "id", "gpuIndex"), attributes.UUID),
    **dict.fromkeys(("computeCapability", "cc", "smVersion"), "cudaComputeCapability"),
    **dict.fromkeys(("cudaVersion", "cuda"), "cudaDriverVersion"),
    **dict.fromkeys(("driver", "version"), "driverVersion"),
    **dict.fromkeys(("nvlinkGroup", "nvlink", "nvLinkDomain"), attributes.NVLINK_DOMAIN),
    **dict.fromkeys(("clique", "cliqueID", "cliqueId"), attributes.FABRIC_CLIQUE),
    **dict.fromkeys(("migProfile", "mig"), "profile"),
    **dict.fromkeys(("parent", "parentUuid", "parentGPU"), "parentUUID"),
    **dict.fromkeys(("numa", "numaNode", "numaNodeID"), names.NUMA_NODE),
    **dict.fromkeys(("pcieRoot", "pciRoot"), names.PCIE_ROOT),
    **dict.fromkeys(("pciBusID", "pciAddress", "busId", "pcieBusID"), names.PCI_BUS_ID),
    **dict.fromkeys(("vram", "mem", "memorySize", "memoryGB", "memoryMiB"), attributes.MEMORY),
}
"""Other words for what is published, as guides and other drivers have them."""

INDEX_WORDS: Final = frozenset(("index", "minor", "id", "gpuIndex"))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What devices in one domain have: names of attributes and capacities, and in which forms.

    often_absent: those that healthy devices may lack.
    """

    domain: str
    attributes: Mapping[str, tuple[Form, ...]]
    capacity: Mapping[str, tuple[Form, ...]]
    often_absent: frozenset[str]

    @classmethod
    def of(cls, domain: str, driver: str) -> Self | None:
        """What is known of a domain; None for one of another driver."""
        if domain == driver:
            own = {name: _ONLY.get(name, FORMS) for name in _ATTRIBUTES if "/" not in name}
            return cls(domain, own, _CAPACITY, frozenset(_OFTEN_ABSENT & own.keys()))
        if domain == STANDARD_DOMAIN:
            standard = {
                name.partition("/")[2]: FORMS for name in _ATTRIBUTES if name.startswith(domain)
            }
            absent = {name.partition("/")[2] for name in _OFTEN_ABSENT if name.startswith(domain)}
            return cls(domain, standard, {}, frozenset(absent))
        return None

    def forms(self, kind: Maps, name: str) -> tuple[Form, ...]:
        """In which forms a device has it; none if no device has."""
        return (self.attributes if kind == "attributes" else self.capacity).get(name, ())


def meant(name: str) -> str:
    """What is published for a word that people use: a name, qualified if it is a standard one."""
    return _OTHER_WORDS.get(name, "")


def fully_qualified(name: str, driver: str) -> str:
    """`domain/name`, as matchAttribute wants it."""
    return name if "/" in name else f"{driver}/{name}"


def qualified_names(driver: str) -> Iterable[str]:
    """Every attribute of Dragoon's devices as matchAttribute wants it."""
    return sorted(fully_qualified(name, driver) for name in _ATTRIBUTES)


PRODUCTS: Final = (
    *("NVIDIA A2", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A16", "NVIDIA A30", "NVIDIA A40"),
    *("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"),
    *("NVIDIA A100-PCIE-40GB", "NVIDIA RTX A1000", "NVIDIA RTX A2000", "NVIDIA RTX A4000"),
    *("NVIDIA RTX A5000", "NVIDIA RTX A6000", "NVIDIA L4", "NVIDIA L20", "NVIDIA L40"),
    *("NVIDIA L40S", "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"),
    *("NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA H20", "NVIDIA H800", "NVIDIA GH200 480GB"),
    *("NVIDIA GH200 144G HBM3e", "NVIDIA B200", "NVIDIA B300", "NVIDIA GB200", "NVIDIA GB300"),
    *("NVIDIA GB10", "Tesla T4", "Tesla P4", "Tesla P40", "Tesla P100-PCIE-16GB"),
    *("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "NVIDIA T400", "NVIDIA T1000"),
    *("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 5090"),
    *("Quadro RTX 8000", "Quadro RTX 6000", "NVIDIA RTX 6000 Ada Generation"),
)
"""Marketing names as NVML tells them, to try a selector on; no decision rests on them."""
