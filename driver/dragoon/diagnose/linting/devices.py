"""The devices of a snapshot as selectors see them, and those that a class lets through."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.cel import DeviceView, EvaluationError, compile_selector, device_view
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.errors import DragoonError


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """One device of a slice. name: driver, pool and device."""

    name: str
    driver: str
    raw: Raw
    view: DeviceView


def published(slices: Iterable[Raw]) -> tuple[Published, ...]:
    """Every device of the newest generation of each pool; unreadable ones are left out."""
    newest: dict[tuple[str, str], int] = {}
    found = [(_pool(one), one) for one in slices]
    for (driver, pool, generation), _ in found:
        newest[driver, pool] = max(generation, newest.get((driver, pool), 0))
    return tuple(
        device
        for (driver, pool, generation), one in found
        if generation == newest[driver, pool]
        for device in _devices(driver, pool, one)
    )


def selected(devices: Iterable[Published], class_: Raw | None) -> Iterator[Published]:
    """The devices that a DeviceClass lets through; of an unknown class all."""
    texts = selector_texts(mapping(mapping(class_).get("spec")))
    for device in devices:
        try:
            if all(compile_selector(text_).evaluate(device.view) for text_ in texts):
                yield device
        except EvaluationError:
            continue
        except DragoonError:
            return


def selector_texts(fields: Mapping[str, Any]) -> list[str]:
    """The CEL texts of `selectors`, those that are there."""
    found = [
        text(mapping(mapping(one).get("cel")).get("expression"))
        for one in listed(fields.get("selectors"))
    ]
    return [one for one in found if one]


def _pool(slice_: Raw) -> tuple[str, str, int]:
    spec = mapping(slice_.get("spec"))
    pool = mapping(spec.get("pool"))
    generation = pool.get("generation")
    return (
        text(spec.get("driver")),
        text(pool.get("name")),
        generation if isinstance(generation, int) else 0,
    )


def _devices(driver: str, pool: str, slice_: Raw) -> Iterator[Published]:
    for raw in listed(mapping(slice_.get("spec")).get("devices")):
        device = mapping(raw)
        try:
            view = device_view(driver, device)
        except (DragoonError, AttributeError):
            continue
        yield Published(f"{driver}/{pool}/{text(device.get('name'))}", driver, device, view)
