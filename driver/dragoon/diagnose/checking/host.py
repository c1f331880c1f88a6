"""Checks of the node's driver and GPUs."""

from collections.abc import Iterator
from typing import Final

from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.codes import Check
from dragoon.gpu.model import FabricState, Gpu, LinkRemote

_CARD: Final = "dmesg | grep -i -e nvrm -e xid"


def _no_driver(evidence: Evidence) -> Iterator[Problem]:
    problem = known(evidence.driver_problem)
    if problem:
        yield Problem("NVML", problem, "nvidia-smi")


def _no_libraries(evidence: Evidence) -> Iterator[Problem]:
    files = known(evidence.driver_files)
    if not files.libraries:
        yield Problem(
            "driverRoot",
            f"no libcuda.so.{files.version or '*'} below {files.root}",
            f"find / -xdev -name 'libcuda.so.{files.version or '*'}'",
        )


def _no_control_nodes(evidence: Evidence) -> Iterator[Problem]:
    for node in known(evidence.driver_files).missing_nodes:
        yield Problem(node, "does not exist", "nvidia-modprobe -u -c 0")


def _lost(evidence: Evidence) -> Iterator[Problem]:
    for card in known(evidence.inventory).lost:
        yield Problem(f"GPU {card.address or 'at an unknown address'}", card.reason, _CARD)


def _silent(evidence: Evidence) -> Iterator[Problem]:
    for gpu in known(evidence.inventory).gpus:
        for problem in gpu.problems:
            yield Problem(f"GPU {gpu.address}", problem, _CARD)


def _none(evidence: Evidence) -> Iterator[Problem]:
    if not known(evidence.inventory).cards:
        yield Problem("NVML", "the driver lists no GPU", "lspci -d 10de:")


def _fabric(evidence: Evidence) -> Iterator[Problem]:
    for gpu in known(evidence.inventory).gpus:
        if gpu.fabric.state is FabricState.FAILED:
            told = gpu.fabric.reason or "the registration with the NVLink fabric failed"
            yield Problem(f"GPU {gpu.address}", told, "systemctl status nvidia-fabricmanager")


def _off_the_switch(evidence: Evidence) -> Iterator[Problem]:
    """Only where others are on a switch: a card without a bridge has its links down and is well."""
    gpus = known(evidence.inventory).gpus
    if not any(_is_on_switch(gpu) for gpu in gpus):
        return
    for gpu in gpus:
        down = sum(not link.active for link in gpu.links)
        divided = gpu.mig is not None and gpu.mig.enabled
        if down and not divided:
            yield Problem(
                f"GPU {gpu.address}",
                f"{down} of {len(gpu.links)} NVLinks are down",
                "nvidia-smi nvlink -s",
            )


def _is_on_switch(gpu: Gpu) -> bool:
    return any(link.active and link.remote is LinkRemote.SWITCH for link in gpu.links)


RULES: Final = (
    Rule(
        Check(
            "HOST001",
            "error",
            "The NVIDIA driver cannot be asked",
            "Without it no GPU of the node is found, and the plugin does not start.",
            "Install the driver and load its kernel module. Where it is not installed in the root "
            "folder (GPU Operator: `/run/nvidia/driver`), set `driverRoot`.",
        ),
        _no_driver,
        before=True,
    ),
    Rule(
        Check(
            "HOST002",
            "error",
            "The driver's libraries are not below driverRoot",
            "Containers would start without libcuda, so every prepare is refused.",
            "Set `driverRoot` to where the driver is installed: `/`, `/run/nvidia/driver` (GPU "
            "Operator) or `/home/kubernetes/bin/nvidia` (GKE).",
        ),
        _no_libraries,
        before=True,
    ),
    Rule(
        Check(
            "HOST003",
            "error",
            "A device file of the driver is missing",
            "Containers cannot use a GPU without it, so every prepare is refused.",
            "Run `nvidia-modprobe -u -c 0`, or start nvidia-persistenced, which does it at boot.",
        ),
        _no_control_nodes,
        before=True,
    ),
    Rule(
        Check(
            "HOST004",
            "error",
            "A GPU is lost",
            "It has fallen off the bus. It stays published with a taint; the others are not "
            "touched.",
            "Read the kernel log, drain the node, then reset the card or reboot.",
        ),
        _lost,
        before=True,
    ),
    Rule(
        Check(
            "HOST005",
            "warning",
            "A GPU does not answer a question",
            "What it does not say is not published, and claims that ask for it do not get the card.",
            "Read the kernel log; update the driver where a question is not known to it.",
        ),
        _silent,
        before=True,
    ),
    Rule(
        Check(
            "HOST006",
            "warning",
            "The node has no GPU",
            "Nothing is published from here.",
            "Keep the plugin off nodes without GPUs with a nodeSelector, or look why the card is "
            "not seen.",
        ),
        _none,
        before=True,
    ),
    Rule(
        Check(
            "HOST007",
            "warning",
            "A GPU could not join its NVLink fabric",
            "It is published without `fabricClique`, and with a taint: traffic between nodes would "
            "not use NVLink.",
            "Look at the fabric manager, or at the NMX controller of a rack.",
        ),
        _fabric,
        before=True,
    ),
    Rule(
        Check(
            "HOST008",
            "warning",
            "A GPU has lost NVLinks that its neighbours have",
            "It is in no NVLink domain with them, so claims for linked GPUs do not get it.",
            "Look at the fabric manager and the kernel log; reset the card or the whole board.",
        ),
        _off_the_switch,
        before=True,
    ),
)
