"""Well-known names. Everything named after the driver derives from its name."""

import re
from typing import Final

from dragoon.api import limits
from dragoon.errors import ConfigError, InvalidInputError

DRIVER_NAME: Final = "gpu.dragoon.dev"

# Standard attributes, shared by all drivers (k8s.io/dynamic-resource-allocation deviceattribute).
PCI_BUS_ID: Final = "resource.kubernetes.io/pciBusID"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
NUMA_NODE: Final = "resource.kubernetes.io/numaNode"

CLASS_GPU: Final = "gpu.dragoon.dev"
CLASS_SIMULATED: Final = "sim.dragoon.dev"
CLASS_MIG: Final = "mig.dragoon.dev"
CLASS_SHARED: Final = "shared.dragoon.dev"

TAINT_OTHER_OWNER: Final = "dragoon.dev/other-owner"
TAINT_LOST: Final = "dragoon.dev/lost"
TAINT_MIG_MODE: Final = "dragoon.dev/mig-mode"
"""The card's MIG mode does not allow this form."""
TAINT_BLOCKED: Final = "dragoon.dev/blocked"
"""A claim was refused because the card cannot take this form now; the value says what is in the
way."""
TAINT_FORM_WITHDRAWN: Final = "dragoon.dev/form-withdrawn"
"""Not offered any more; published while somebody may still hold it."""
TAINT_GANG_ONLY: Final = "dragoon.dev/gang-only"
"""On all devices of a node that is for gangs only: only our allocations ignore it."""
TAINT_XID: Final = "dragoon.dev/xid"
"""The card raised an XID after which it must be reset; the value is the first one."""
TAINT_MEMORY: Final = "dragoon.dev/memory"
"""Memory of the card is broken."""
TAINT_MEMORY_PENDING: Final = "dragoon.dev/memory-pending"
"""Broken memory is replaced by the next reset of the card."""
TAINT_RECOVERY: Final = "dragoon.dev/recovery"
"""The driver says that the card must be reset, or the node rebooted; the value is which."""
TAINT_FABRIC: Final = "dragoon.dev/fabric"
TAINT_NVLINK: Final = "dragoon.dev/nvlink"
TAINT_UNWATCHED: Final = "dragoon.dev/unwatched"
"""The card does not report its errors."""

KEEPS_OFF: Final = frozenset(("NoSchedule", "NoExecute"))
"""Effects of taints that keep new pods off a node, and new claims off a device."""

ENDED: Final = frozenset(("Succeeded", "Failed"))
"""Phases of pods whose containers have all ended, for good."""

LABEL_FORMS: Final = "dragoon.dev/forms"
"""On a Node: in which forms its GPUs are published, `whole_shared_mig`."""
LABEL_GANG_ONLY: Final = "dragoon.dev/gang-only"
"""On a Node, `true`: its devices are for gangs only."""
LABEL_COEXIST: Final = "dragoon.dev/coexist"
"""On a Node, `true`: publish cards without a taint although somebody else offers them too."""

LABEL_GANG_UID: Final = "dragoon.dev/gang-uid"
"""On a DeviceTaintRule of a gang: the gang's UID."""

FINALIZER: Final = "resource.kubernetes.io/delete-protection"

_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,62}")


def check_driver_name(name: str) -> str:
    """Returns the name, or raises ConfigError: a lower-case DNS subdomain of at most 63 characters.

    Source: KEP-4381, ResourceSlice validation of `spec.driver`.
    """
    if not limits.is_subdomain(name, limits.DRIVER_NAME_BYTES):
        raise ConfigError(
            f"driver name: found {name!r} ({len(name)} characters), allowed is a lower-case DNS "
            f"subdomain of at most {limits.DRIVER_NAME_BYTES} characters",
            hint="set driverName to a name such as gpu.dragoon.dev",
        )
    return name


def check_uid(uid: str, *, field: str) -> str:
    """Returns the UID of an object, or raises InvalidInputError: it becomes part of file names.

    Kubernetes makes UUIDs; any short word of letters, digits and "-" is as harmless.
    """
    if not _UID.fullmatch(uid):
        raise InvalidInputError(
            f"{field}: found {uid!r}, allowed are at most 63 letters, digits and '-'"
        )
    return uid
