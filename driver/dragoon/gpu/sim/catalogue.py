"""What the simulated driver answers for a product when the topology file does not say.

Public facts about products: architecture and brand as NVML calls them, CUDA compute capability,
NVLink version and speed per link as `nvidia-smi nvlink -s` prints it. Only the simulation reads
this table; Dragoon itself asks the card and never derives anything from a name.
"""

from dataclasses import dataclass

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

    architecture: str | None = None
    brand: str | None = None
    compute_capability: tuple[int, int] | None = None
    nvlink: tuple[int, int] | tuple[None, None] = _NO_LINKS
    grace: bool = False


# The first name found in the product's text wins: longer names stand before their parts.
_PRODUCTS = {
    "GB200": Product("Blackwell", "NVIDIA", (10, 0), _NVLINK_5, grace=True),
    "GB10": Product("Blackwell", "NVIDIA", (12, 1)),
    "GH200": Product("Hopper", "NVIDIA", (9, 0), _NVLINK_4, grace=True),
    "B200": Product("Blackwell", "NVIDIA", (10, 0), _NVLINK_5),
    "H200": Product("Hopper", "NVIDIA", (9, 0), _NVLINK_4),
    "H100": Product("Hopper", "NVIDIA", (9, 0), _NVLINK_4),
    "RTX PRO 6000": Product("Blackwell", "NVIDIA RTX", (12, 0)),
    "A100": Product("Ampere", "NVIDIA", (8, 0), _NVLINK_3),
    "RTX A6000": Product("Ampere", "NVIDIA RTX", (8, 6), _NVLINK_3_BRIDGE),
    "A30": Product("Ampere", "NVIDIA", (8, 0), _NVLINK_3),
    "A40": Product("Ampere", "NVIDIA", (8, 6), _NVLINK_3_BRIDGE),
    "RTX 3090": Product("Ampere", "GeForce", (8, 6), _NVLINK_3_BRIDGE),
    "RTX 4090": Product("Ada Lovelace", "GeForce", (8, 9)),
    "L40S": Product("Ada Lovelace", "NVIDIA", (8, 9)),
    "L20": Product("Ada Lovelace", "NVIDIA", (8, 9)),
    "L4": Product("Ada Lovelace", "NVIDIA", (8, 9)),
    "RTX 8000": Product("Turing", "Quadro RTX", (7, 5), _NVLINK_2),
    "T4": Product("Turing", "Tesla", (7, 5)),
    "V100": Product("Volta", "Tesla", (7, 0), _NVLINK_2),
    "GTX 1080": Product("Pascal", "GeForce", (6, 1)),
}


def product(name: str) -> Product | None:
    """The product line of a card's name; None for one that is not in the table."""
    return next((facts for key, facts in _PRODUCTS.items() if key in name), None)
