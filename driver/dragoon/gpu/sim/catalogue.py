"""What the simulated driver answers for a product when the topology file does not say.

Public facts about products: architecture and brand numbers of nvml.h, CUDA compute capability,
NVLink version and speed per link as `nvidia-smi nvlink -s` prints it. Only the simulation reads
this table; Dragoon itself asks the card and never derives anything from a name.
"""

from dataclasses import dataclass

# NVML_DEVICE_ARCH_* and NVML_BRAND_*
_PASCAL, _VOLTA, _TURING, _AMPERE, _ADA, _HOPPER, _BLACKWELL = range(4, 11)
_TESLA, _GEFORCE, _QUADRO_RTX, _NVIDIA_RTX, _NVIDIA = 2, 5, 12, 13, 14
# NVLink generations as nvmlDeviceGetNvLinkVersion numbers them, with MB/s per link and direction
_NVLINK_2 = (2, 25781)
_NVLINK_3 = (4, 25000)
_NVLINK_3_BRIDGE = (4, 14062)
_NVLINK_4 = (6, 26562)
_NVLINK_5 = (7, 53125)
_NO_LINKS = (None, None)


@dataclass(frozen=True, slots=True)
class Product:
    """Facts of one product line; grace: the GPU hangs on a Grace CPU with its own PCI domain."""

    architecture: int | None = None
    brand: int | None = None
    compute_capability: tuple[int, int] | None = None
    nvlink: tuple[int, int] | tuple[None, None] = _NO_LINKS
    grace: bool = False


# The first name found in the product's text wins: longer names stand before their parts.
_PRODUCTS = {
    "GB200": Product(_BLACKWELL, _NVIDIA, (10, 0), _NVLINK_5, grace=True),
    "GB10": Product(_BLACKWELL, _NVIDIA, (12, 1)),
    "GH200": Product(_HOPPER, _NVIDIA, (9, 0), _NVLINK_4, grace=True),
    "B200": Product(_BLACKWELL, _NVIDIA, (10, 0), _NVLINK_5),
    "H200": Product(_HOPPER, _NVIDIA, (9, 0), _NVLINK_4),
    "H100": Product(_HOPPER, _NVIDIA, (9, 0), _NVLINK_4),
    "A100": Product(_AMPERE, _NVIDIA, (8, 0), _NVLINK_3),
    "RTX A6000": Product(_AMPERE, _NVIDIA_RTX, (8, 6), _NVLINK_3_BRIDGE),
    "A30": Product(_AMPERE, _NVIDIA, (8, 0), _NVLINK_3),
    "A40": Product(_AMPERE, _NVIDIA, (8, 6), _NVLINK_3_BRIDGE),
    "RTX 3090": Product(_AMPERE, _GEFORCE, (8, 6), _NVLINK_3_BRIDGE),
    "RTX 4090": Product(_ADA, _GEFORCE, (8, 9)),
    "L40S": Product(_ADA, _NVIDIA, (8, 9)),
    "L20": Product(_ADA, _NVIDIA, (8, 9)),
    "L4": Product(_ADA, _NVIDIA, (8, 9)),
    "RTX 8000": Product(_TURING, _QUADRO_RTX, (7, 5), _NVLINK_2),
    "T4": Product(_TURING, _TESLA, (7, 5)),
    "V100": Product(_VOLTA, _TESLA, (7, 0), _NVLINK_2),
    "GTX 1080": Product(_PASCAL, _GEFORCE, (6, 1)),
}


def product(name: str) -> Product | None:
    """The product line of a card's name; None for one that is not in the table."""
    return next((facts for key, facts in _PRODUCTS.items() if key in name), None)
