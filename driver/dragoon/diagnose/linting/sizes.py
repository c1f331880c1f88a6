"""Memory sizes just above what the cards have: `80Gi` against a card of 80 GB (79.65 Gi)."""

from collections.abc import Iterator
from typing import Final

from dragoon import quantity
from dragoon.cel import EvaluationError, Program, compile_selector
from dragoon.diagnose.linting import wording
from dragoon.diagnose.linting.devices import Published
from dragoon.diagnose.linting.finding import Finding, Place
from dragoon.diagnose.manifests import mapping
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity

_GIB: Final = 2**30
_NEAR: Final = 1.075
"""GB for GiB is 7.4 per cent; what drivers reserve is less."""


def check(place: Place, program: Program, devices: tuple[Published, ...]) -> Iterator[Finding]:
    """Sizes in a selector. The smaller size that is offered was tried on the device."""
    for constant, wanted in wording.quantities(program.text):
        for device, size in _just_below(wanted, devices):
            smaller = wording.with_constant(program.text, constant, _whole_gi(size))
            if (
                smaller
                and not _matches(program, device)
                and _matches(compile_selector(smaller), device)
            ):
                yield _finding(place, wanted, device, size, smaller)
                break


def check_amount(
    place: Place, wanted: Quantity, devices: tuple[Published, ...]
) -> Iterator[Finding]:
    """An amount in `capacity.requests`."""
    for device, size in _just_below(wanted, devices):
        yield _finding(place, wanted, device, size, _whole_gi(size))
        return


def _finding(
    place: Place, wanted: Quantity, device: Published, size: Quantity, instead: str
) -> Finding:
    gib = size.as_approximate_float() / _GIB
    message = f"{wanted}; device {device.name} has {size}, which is {gib:.2f} Gi"
    return place.finding("DRG410", message, instead)


def _just_below(
    wanted: Quantity, devices: tuple[Published, ...]
) -> Iterator[tuple[Published, Quantity]]:
    """Devices whose memory is a little less than what is wanted, the largest first."""
    sizes = [(device, size) for device in devices if (size := memory(device)) is not None]
    near = [
        (device, size)
        for device, size in sizes
        if size.as_approximate_float() >= _GIB
        and size < wanted
        and wanted.as_approximate_float() <= size.as_approximate_float() * _NEAR
    ]
    yield from sorted(near, key=lambda one: (-one[1].as_approximate_float(), one[0].name))


def memory(device: Published) -> Quantity | None:
    """The memory that a device has, None where it does not say it."""
    entry = mapping(mapping(device.raw.get("capacity")).get("memory"))
    try:
        return quantity.parse(str(entry["value"]))
    except (InvalidInputError, KeyError):
        return None


def _whole_gi(size: Quantity) -> str:
    return f"{size.as_approximate_int() // _GIB}Gi"


def _matches(program: Program, device: Published) -> bool:
    try:
        return program.evaluate(device.view)
    except EvaluationError:
        return False
