"""The errors of Dragoon: one base, a stable code, a hint, retryable or final.

May import nothing but the standard library. Foreign exceptions (NVML, gRPC, HTTP, OSError) are
translated into these at the edge that meets them; nothing above an edge sees a foreign one.

A code is part of the interface: it stands in conditions, logs, metrics and docs, and never
changes its meaning. A hint says what the reader can do next.
"""

from typing import ClassVar


class DragoonError(Exception):
    """Something went wrong that Dragoon understands.

    code: stable identifier, CamelCase as in Kubernetes condition reasons.
    hint: one sentence telling the user what to do; empty when there is nothing to do.
    retryable: the same call may succeed later without anybody changing the input.
    """

    code: ClassVar[str] = "Internal"
    default_hint: ClassVar[str] = ""
    default_retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint
        self.retryable = self.default_retryable if retryable is None else retryable

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __repr__(self) -> str:
        kind = "retryable" if self.retryable else "final"
        return f"<{type(self).__name__} {self.code} {kind}: {self}>"


# What the user wrote.


class InvalidInputError(DragoonError):
    """A value from outside is not allowed: names the field, what was found, what is allowed."""

    code = "InvalidInput"


class ConfigError(InvalidInputError):
    """A config file, flag or environment variable is wrong."""

    code = "InvalidConfig"


class UnsupportedError(DragoonError):
    """The input is legal, but this version of Dragoon does not do it; never a silent `false`."""

    code = "Unsupported"


# The GPUs of this node.


class HardwareError(DragoonError):
    """The GPUs of this node cannot be used or read."""

    code = "Hardware"
    default_hint = "look for the card in the kernel log, then reset it or reboot the node"


class DriverMissingError(HardwareError):
    """There is no NVIDIA driver here, or its library cannot be loaded."""

    code = "DriverMissing"
    default_hint = "install the NVIDIA driver, or simulate a machine with --simulate NAME"


class DeviceLostError(HardwareError):
    """A GPU was there and is not any more, or answers nothing."""

    code = "DeviceLost"
    default_hint = "drain the node and reset or reboot it"


# The API server.


class ApiError(DragoonError):
    """The API server refused or could not be asked."""

    code = "Api"
    status: int = 0

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        hint: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retryable=retryable)
        self.status = status


class ApiUnavailableError(ApiError):
    """No connection, a time-out, 429 or 5xx."""

    code = "ApiUnavailable"
    default_retryable = True


class ApiNotFoundError(ApiError):
    """404: the object, or the whole API, does not exist."""

    code = "ApiNotFound"


class ApiConflictError(ApiError):
    """409: somebody else wrote in between (or the name is taken); read again and decide again."""

    code = "ApiConflict"
    default_retryable = True


class ApiGoneError(ApiError):
    """410: the resourceVersion is too old; list again."""

    code = "ApiGone"
    default_retryable = True


class ApiInvalidError(ApiError):
    """400 or 422: the object is not valid; sending it again will not help."""

    code = "ApiInvalid"


class ApiForbiddenError(ApiError):
    """401 or 403: the credentials are refused or lack the permission."""

    code = "ApiForbidden"
    default_hint = "check the ServiceAccount and the ClusterRole of Dragoon"


# Claims and their devices.


class ClaimError(DragoonError):
    """This claim cannot be prepared as it is."""

    code = "Claim"
    default_hint = "delete the pod and its claim: a new claim is allocated from what is here now"


class ClaimGoneError(ClaimError):
    """The claim was deleted, or another one has its name now (UID differs)."""

    code = "ClaimGone"
    default_hint = "nothing is to be done: the kubelet asks for what is there now"


class ClaimNotAllocatedError(ClaimError):
    """The claim has no allocation, or none for this node's driver."""

    code = "ClaimNotAllocated"
    default_hint = "the claim is waited for until it is allocated"
    default_retryable = True


class UnknownDeviceError(ClaimError):
    """The allocation names a device that this node does not have."""

    code = "UnknownDevice"


class DeviceBusyError(ClaimError):
    """Another claim still holds the device on this node."""

    code = "DeviceBusy"
    default_hint = "it is free when the containers of that claim have ended"
    default_retryable = True


class ClaimInUseError(ClaimError):
    """The claim is to be taken back while a pod on this node still runs with it."""

    code = "ClaimInUse"
    default_hint = "it is taken back when these pods end; kubelets before 1.37 ask too early"
    default_retryable = True


class StateError(DragoonError):
    """The state kept on this node (journal, CDI folder) cannot be read or written."""

    code = "State"


class CdiError(StateError):
    """A CDI spec would not be accepted by the container runtime."""

    code = "Cdi"
    default_hint = "report it: a spec that Dragoon makes must be valid"


class KubeletError(DragoonError):
    """The kubelet cannot be served: sockets, registration."""

    code = "Kubelet"
