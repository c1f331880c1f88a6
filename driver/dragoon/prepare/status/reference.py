"""docs/refusals.md, made from the errors themselves: no code is without its entry."""

from collections.abc import Mapping
from typing import Final

from dragoon import errors
from dragoon.errors import DragoonError
from dragoon.gpu import faults
from dragoon.prepare.enforcement.errors import TierUnavailableError, UnenforceableError
from dragoon.prepare.status import pressure

REFUSALS: Final[Mapping[type[DragoonError], str]] = {
    errors.InvalidInputError: "Correct the field of the class or the claim that the message names, "
    "then make the pod anew.",
    errors.ClaimError: "The allocation cannot be what was meant. Delete the pod and its claim.",
    errors.UnknownDeviceError: "Delete the pod and its claim: a new claim is allocated from what is "
    "there now.",
    errors.DeviceLostError: "Delete the pod, so that it gets another card; drain the node and reset "
    "or reboot it.",
    errors.DeviceBusyError: "Nothing, if the holder's containers are ending. Otherwise look why the "
    "claim that is named is still prepared.",
    errors.HardwareError: "Look for the card in the kernel log; reset it, or reboot the node.",
    errors.DriverMissingError: "Install the NVIDIA driver on the node, or keep pods off it.",
    errors.StateError: "Look at the disk and the folder of the plugin that is named.",
    errors.CdiError: "A defect of Dragoon or of the driver's own CDI spec: report it.",
    faults.FeatureMissingError: "Ask for another form, or add `mig` to the forms of the node.",
    faults.CardInUseError: "End the processes or remove the instances that are named. Monitoring "
    "agents hold cards open without being listed.",
    faults.ResetRequiredError: "Drain the node, then reset the GPU or reboot.",
    faults.PlacementTakenError: "Remove the MIG instance that is named, or leave the GPU to its owner.",
    faults.InstanceChangedError: "Somebody changes MIG instances by hand: let only one do it.",
    faults.PermissionMissingError: "Run the plugin as root, with access to the card's device files.",
    TierUnavailableError: "Leave `tier` out, or select on `memoryEnforcement`, so that shares go to "
    "nodes that can limit them.",
    UnenforceableError: "Change the pod as the message says: one share for each container, from a "
    "ResourceClaimTemplate.",
}
"""What the reader can do about each error that a claim can be refused with."""

_BEFORE: Final = """\
# Refusals

A claim that a node cannot prepare must not be a dead end: its allocation never changes, and the kubelet
asks again for ever. So what a claim can be refused for shows in attributes wherever that is possible, and
then the pod waits instead. What is refused all the same is told where people and programs look:

| where | what |
|---|---|
| `claim.status.devices[]` | condition `Ready=False` with a code from the table below, the message and what to do |
| one event on the pod | the same; on the claim where no pod or several use it. Once for each code, however often the kubelet asks, also after a restart of the plugin |
| a taint on the device | `dragoon.dev/blocked`, where the card is to blame |
| metrics, log | `dragoon_prepare_total` by code; a line for each try |

```
kubectl get resourceclaim NAME -o jsonpath='{range .status.devices[*]}{.device}{"  "}{.conditions}{"\\n"}{end}'
```

A refusal that may pass was waited for inside the kubelet's call, up to 40 s, and the kubelet asks again
after 60 to 90 s. The message of `DeviceBusy` says which claim still holds the GPU. When the claim is prepared
later, `Ready` becomes True and nothing else is left of the refusal.

## Codes

Codes are part of the interface: they never change their meaning, and are the same in metrics and logs.
*may pass*: the same try may succeed later without anybody changing the claim. The message is the last word.

| code | what it means | may pass | what to do |
|---|---|---|---|
"""

_AFTER: Final = f"""
## What else the status says

Each device and share of a prepared claim has an entry, written once and when something changes:

| condition | value and reason |
|---|---|
| `Ready` | True `Prepared`; False with a code |
| `Enforced` | True `WholeGpu`, `Mig`, `Cgroup` or `Hami`; False `NotEnforced` (tier `none`), `AdminAccess`, a code, or a cause of the [audit](audit.md) |
| `MemoryPressure` | True `{pressure.ABOVE}`: a container uses {pressure.PER_CENT} % of its memory limit or more; absent otherwise. Written when the mark is crossed, at most once in five minutes for a claim |

| data | meaning |
|---|---|
| `tier` | `mig`, `cgroup`, `hami` or `none`; absent for a whole GPU |
| `memoryLimit`, `coresLimit` | a share's limits: a quantity of bytes, and per cent (100: no ceiling) |
| `container` | the only container that sees the share, where a tier must know |
| `gpuUUID`, `migUUID`, `migProfile` | the hardware that it is |
| `onRefusal` | below |

An event `ConfigIgnored` names a config block that has no effect because it is for another driver.

After an unprepare the entries go with the allocation; of a claim that stays allocated the plugin removes its
own after half a minute. Entries of other drivers are never changed. A write that fails is tried again with
growing pauses, and what is missing is written at the comparison that runs each minute. An API server that
drops `status.devices` is not written to.

## Taints

A card that cannot change its MIG mode, because somebody uses it or because it must be reset, gets the taint
`dragoon.dev/blocked` (NoSchedule) on those of its devices that need the change, and only on those. The value
has the code and who is in the way, as far as 63 characters go. The taint goes within 10 s after the process
has ended, the instances are gone or the mode is as it was needed; where nobody can see the cause, after five
minutes, and then the next claim tells. Lost cards have their own taint (`dragoon.dev/lost`). Why the scheduler
is told by taints, and not by binding conditions: [publishing.md](publishing.md).

## Eviction

`onRefusal: Evict` in the plugin's [settings](configuration.md) asks for pods to be evicted whose claim will
never be prepared on this node. The plugin evicts nobody. It leaves a mark for the controller, in the entry
of the device: `Ready=False`, and `data.onRefusal: Evict`. A refusal that may pass has no `onRefusal`; with the
default, `Report`, a final one has `data.onRefusal: Report`. Since Kubernetes 1.36 the plugin of the claim's
node is the only ServiceAccount that may write this field, so nobody can have a foreign pod evicted by editing a claim. In code:
`dragoon.api.device_status.wants_eviction(claim, driver)`.

## Rights

`patch` on `resourceclaims/status`, and since Kubernetes 1.36 `associated-node:patch` on `resourceclaims/driver`
for the name of the driver. The second is granted for claims of one node only, to a ServiceAccount token that
is bound to that node. A pod's token is; for a plugin outside a pod:

```
kubectl create token dragoon-plugin -n dragoon-system --bound-object-kind Node --bound-object-name NODE
```

Without it claims are prepared as ever, and the log says that their status could not be written.
"""


def reference() -> str:
    """docs/refusals.md."""
    rows = [
        f"| `{kind.code}` | {_meaning(kind)} | {_passes(kind)} | {advice} |"
        for kind, advice in sorted(REFUSALS.items(), key=lambda item: item[0].code)
    ]
    return _BEFORE + "\n".join(rows) + "\n" + _AFTER


_BY_CASE: Final = (
    errors.HardwareError,
    errors.StateError,
    faults.FeatureMissingError,
    faults.PlacementTakenError,
    TierUnavailableError,
)
"""Errors of which some may pass, and others not."""


def _passes(kind: type[DragoonError]) -> str:
    if kind in _BY_CASE:
        return "by case"
    return "yes" if kind.default_retryable else "no"


def _meaning(kind: type[DragoonError]) -> str:
    """The first sentence of the error's own description."""
    line = (kind.__doc__ or "").partition("\n")[0]
    return f"{line.partition('. ')[0].rstrip('.')}."
