"""One look at one card."""

from functools import partial

import pynvml

from dragoon.gpu.model import Gpu, LostGpu, MigMode, PciAddress
from dragoon.gpu.nvml.asking import Asking, CardSilentError
from dragoon.gpu.nvml.fabric import read_fabric
from dragoon.gpu.nvml.links import read_links
from dragoon.gpu.pci import Roots, seat
from dragoon.gpu.words import ARCHITECTURES, BRANDS

_LAST_BUS, _LAST_DEVICE = 0xFF, 0x1F  # of a PCI domain


def look_at(index: int, roots: Roots) -> Gpu | LostGpu:
    """Reads everything that the inventory knows of the card with this NVML index.

    Without an address and a UUID a card cannot be told from others: it is then lost, with as much
    of its identity as it said.
    """
    asking = Asking()
    address = None
    try:
        handle = asking.must("handle", partial(pynvml.nvmlDeviceGetHandleByIndex, index))
        address = asking.must("PCI address", partial(read_address, handle))
        uuid = asking.must("UUID", partial(pynvml.nvmlDeviceGetUUID, handle))
        return _describe(handle, asking, roots, address=address, index=index, uuid=uuid)
    except CardSilentError as silent:
        return LostGpu(address=address, reason=str(silent))


def _describe(
    handle: object, asking: Asking, roots: Roots, *, address: PciAddress, index: int, uuid: str
) -> Gpu:
    architecture = asking.ask("architecture", partial(pynvml.nvmlDeviceGetArchitecture, handle))
    brand = asking.ask("brand", partial(pynvml.nvmlDeviceGetBrand, handle))
    where = seat(roots, address)
    return Gpu(
        address=address,
        index=index,
        uuid=uuid,
        product=asking.ask("product name", partial(pynvml.nvmlDeviceGetName, handle)),
        brand=None if brand is None else BRANDS.get(brand),
        architecture=None if architecture is None else ARCHITECTURES.get(architecture),
        compute_capability=asking.ask(
            "compute capability", partial(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        ),
        memory_bytes=asking.ask("memory", partial(_memory, handle)),
        minor=asking.ask("minor number", partial(pynvml.nvmlDeviceGetMinorNumber, handle)),
        mig=asking.ask("MIG mode", partial(_mig_mode, handle)),
        links=read_links(handle, asking),
        fabric=read_fabric(handle, asking),
        numa_node=where.numa_node,
        pcie_root=where.root,
        pci_path=where.path,
        problems=asking.problems,
    )


def read_address(handle: object) -> PciAddress:
    """Where the card of that handle is.

    Raises what pynvml raises, and ValueError for what is no address: names are made from it.
    """
    info = pynvml.nvmlDeviceGetPciInfo_v3(handle)
    if info.bus > _LAST_BUS or info.device > _LAST_DEVICE:
        raise ValueError(f"bus {info.bus:#x}, device {info.device:#x}")
    return PciAddress(info.domain, info.bus, info.device)


def _memory(handle: object) -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)


def _mig_mode(handle: object) -> MigMode:
    current, pending = pynvml.nvmlDeviceGetMigMode(handle)
    enabled = pynvml.NVML_DEVICE_MIG_ENABLE
    return MigMode(enabled=current == enabled, pending=pending == enabled)
