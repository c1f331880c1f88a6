"""One look at one card."""

from functools import partial

import pynvml

from dragoon.gpu.model import Gpu, LostGpu, MigMode, PciAddress
from dragoon.gpu.nvml.asking import Asking, CardSilentError
from dragoon.gpu.nvml.fabric import read_fabric
from dragoon.gpu.nvml.links import read_links
from dragoon.gpu.pci import Roots, seat

_ARCHITECTURES = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "Kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada Lovelace",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
    pynvml.NVML_DEVICE_ARCH_RUBIN: "Rubin",
}
_BRANDS = {
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_NVS: "NVS",
    pynvml.NVML_BRAND_GRID: "GRID",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA_VAPPS: "NVIDIA Virtual Applications",
    pynvml.NVML_BRAND_NVIDIA_VPC: "NVIDIA Virtual PC",
    pynvml.NVML_BRAND_NVIDIA_VCS: "NVIDIA Virtual Compute Server",
    pynvml.NVML_BRAND_NVIDIA_VWS: "NVIDIA RTX Virtual Workstation",
    pynvml.NVML_BRAND_NVIDIA_CLOUD_GAMING: "NVIDIA Cloud Gaming",
    pynvml.NVML_BRAND_QUADRO_RTX: "Quadro RTX",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NVIDIA RTX",
    pynvml.NVML_BRAND_NVIDIA: "NVIDIA",
    pynvml.NVML_BRAND_GEFORCE_RTX: "GeForce RTX",
    pynvml.NVML_BRAND_TITAN_RTX: "Titan RTX",
}


def look_at(index: int, roots: Roots) -> Gpu | LostGpu:
    """Reads everything that the inventory knows of the card with this NVML index.

    Without an address and a UUID a card cannot be told from others: it is then lost, with as much
    of its identity as it said.
    """
    asking = Asking()
    address = None
    try:
        handle = asking.must("handle", partial(pynvml.nvmlDeviceGetHandleByIndex, index))
        address = asking.must("PCI address", partial(_address, handle))
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
        brand=None if brand is None else _BRANDS.get(brand),
        architecture=None if architecture is None else _ARCHITECTURES.get(architecture),
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


def _address(handle: object) -> PciAddress:
    info = pynvml.nvmlDeviceGetPciInfo_v3(handle)
    return PciAddress(info.domain, info.bus, info.device)


def _memory(handle: object) -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)


def _mig_mode(handle: object) -> MigMode:
    current, pending = pynvml.nvmlDeviceGetMigMode(handle)
    enabled = pynvml.NVML_DEVICE_MIG_ENABLE
    return MigMode(enabled=current == enabled, pending=pending == enabled)
