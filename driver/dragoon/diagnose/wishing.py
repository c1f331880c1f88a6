"""A ResourceClaimTemplate from a few words: what `dragoon claim new` prints. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoon import quantity
from dragoon.allocator.problem import MAX_DEVICES
from dragoon.api import limits, names
from dragoon.api.forms import SMALLEST_SHARE
from dragoon.diagnose.documents import Origin
from dragoon.diagnose.linting import Finding, lint
from dragoon.diagnose.manifests import Item, Manifests
from dragoon.errors import InvalidInputError
from dragoon.gpu.mig_names import ProfileName
from dragoon.publish.attributes import CORES, MEMORY, NVLINK_DOMAIN, PRODUCT, PROFILE

_FULL: Final = 100
_NAME_BYTES: Final = 63


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim is to ask for.

    gpus: how many devices. memory: at least, of each. share: so much of a GPU, with at most that
    many per cent of its compute (cores; None: no ceiling). profile: of a MIG device. product: part of
    the model's name. same_nvlink: all devices in one NVLink domain. class_name: another than
    follows from the form.
    """

    name: str = ""
    gpus: int = 1
    memory: str = ""
    share: str = ""
    cores: int | None = None
    profile: str = ""
    product: str = ""
    same_nvlink: bool = False
    class_name: str = ""

    @property
    def title(self) -> str:
        """The name that it was given, or one that says what it is."""
        return self.name or "-".join(self._words())

    def _words(self) -> Iterator[str]:
        if self.share:
            yield f"share-{self.share.lower().replace('.', '-')}"
        elif self.profile:
            yield f"mig-{ProfileName.parse(self.profile).slug}"
        else:
            yield "gpu" if self.gpus == 1 else f"{self.gpus}-gpus"


def template(wish: Wish) -> dict[str, Any]:
    """The template. Raises InvalidInputError, naming the option, for what cannot be asked for."""
    _check(wish)
    request: dict[str, Any] = {"deviceClassName": wish.class_name or _class_of(wish)}
    if wish.gpus != 1:
        request["count"] = wish.gpus
    amounts = dict(_amounts(wish))
    if amounts:
        request["capacity"] = {"requests": amounts}
    clauses = list(_clauses(wish))
    if clauses:
        request["selectors"] = [{"cel": {"expression": " && ".join(clauses)}}]
    devices: dict[str, Any] = {"requests": [{"name": "gpu", "exactly": request}]}
    constraints = list(_constraints(wish))
    if constraints:
        devices["constraints"] = constraints
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": wish.title},
        "spec": {"spec": {"devices": devices}},
    }


def problems(found: dict[str, Any]) -> tuple[Finding, ...]:
    """What our own lints say of it. An error is a bug here."""
    return lint(Manifests((Item(Origin("claim"), found, "default"),)))


def _class_of(wish: Wish) -> str:
    if wish.share:
        return names.CLASS_SHARED
    return names.CLASS_MIG if wish.profile else names.CLASS_GPU


def _amounts(wish: Wish) -> Iterator[tuple[str, str]]:
    memory = wish.share or wish.memory
    if memory:
        yield MEMORY, memory
    if wish.cores is not None:
        yield CORES, str(wish.cores)


def _clauses(wish: Wish) -> Iterator[str]:
    """Guarded: a read of what a device does not have would stop the whole allocation."""
    ours = f'device.attributes["{names.DRIVER_NAME}"]'
    if wish.profile:
        yield f'{ours}.?{PROFILE}.orValue("") == "{wish.profile}"'
    if wish.product:
        # Not with orValue: the API server does not know how long its result is, and refuses it as
        # too expensive.
        yield f'"{PRODUCT}" in {ours}'
        yield f'{ours}.{PRODUCT}.contains("{wish.product}")'


def _constraints(wish: Wish) -> Iterator[dict[str, Any]]:
    if wish.same_nvlink:
        yield {"requests": ["gpu"], "matchAttribute": f"{names.DRIVER_NAME}/{NVLINK_DOMAIN}"}


def _check(wish: Wish) -> None:
    """Raises InvalidInputError for options that exclude each other, and for wrong values."""
    if wish.share and wish.profile:
        raise InvalidInputError("--profile: found with --share, allowed is one of them")
    if wish.share and wish.memory:
        raise InvalidInputError("--memory: found with --share, whose amount is the memory")
    if wish.cores is not None and not wish.share:
        raise InvalidInputError("--cores: found without --share, only a share has a ceiling")
    if wish.cores is not None and not 1 <= wish.cores <= _FULL:
        raise InvalidInputError(f"--cores: found {wish.cores}, allowed is 1 to {_FULL}")
    if not 1 <= wish.gpus <= MAX_DEVICES:
        raise InvalidInputError(f"--gpus: found {wish.gpus}, allowed is 1 to {MAX_DEVICES}")
    if wish.same_nvlink and (wish.share or wish.profile):
        raise InvalidInputError(
            "--same-nvlink: found with a part of a GPU, only whole ones have it"
        )
    if wish.same_nvlink and wish.gpus == 1:
        raise InvalidInputError("--same-nvlink: found with one GPU, it takes two to agree")
    _check_amount("--memory", wish.memory, 1)
    _check_amount("--share", wish.share, SMALLEST_SHARE)
    _check_profile(wish.profile)
    if wish.class_name and not limits.is_subdomain(wish.class_name):
        raise InvalidInputError(
            f"--class: found {wish.class_name!r}, allowed is the name of a DeviceClass"
        )
    if not limits.is_subdomain(wish.title, _NAME_BYTES):
        raise InvalidInputError(
            f"--name: found {wish.title!r}, allowed is a lower-case DNS name of at most "
            f"{_NAME_BYTES} characters"
        )
    if any(one in '"\\' or not one.isprintable() for one in wish.product):
        raise InvalidInputError(f"--product: found {wish.product!r}, a name has no quotes")


def _check_profile(name: str) -> None:
    if name:
        try:
            ProfileName.parse(name)
        except InvalidInputError as error:
            raise InvalidInputError(f"--profile: {error.message}") from error


def _check_amount(option: str, text: str, least: int) -> None:
    if not text:
        return
    try:
        amount = quantity.parse(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{option}: {error.message}", hint="such as 40Gi") from error
    if amount < quantity.parse(str(least)):
        told = "512Mi" if least == SMALLEST_SHARE else "1"
        raise InvalidInputError(f"{option}: found {text}, allowed is {told} and more")
