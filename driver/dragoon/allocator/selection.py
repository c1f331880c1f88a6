"""Which devices a request selects: class selectors, then the request's own, then the node.

A selector that fails stops kube-scheduler's whole attempt (dra-api.md B.3), so a failure is an
exception here and is raised only when the search comes to that device.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dragoon.allocator.model import Device, DeviceClass, Node, Request, Slice
from dragoon.allocator.nodes import matches
from dragoon.cel import EvaluationError, Program, compile_selector
from dragoon.errors import DragoonError, InvalidInputError, UnsupportedError


class SelectorError(DragoonError):
    """A selector does not compile, or fails on a device that the search has come to."""

    code = "Selector"


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """A compiled selector. owner says where it stands, as in `class X: selector 0`."""

    owner: str
    text: str
    program: Program

    def matches(self, device: Device) -> bool:
        """Whether it selects the device. Raises SelectorError naming owner and device."""
        try:
            return self.program.evaluate(device.view)
        except EvaluationError as error:
            raise SelectorError(
                f"{self.owner} on device {device.id}: {error.message}",
                hint="guard the read with has() or .?field.orValue(default)",
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The selectors of one request, class first."""

    of_class: tuple[Selector, ...]
    of_request: tuple[Selector, ...]

    def selects(self, slice_: Slice, device: Device, node: Node) -> bool:
        """Whether the request selects the device on this node. Raises SelectorError."""
        return (
            all(selector.matches(device) for selector in self.of_class)
            and all(selector.matches(device) for selector in self.of_request)
            and is_on_node(slice_, device, node)
        )


def is_on_node(slice_: Slice, device: Device, node: Node) -> bool:
    """Whether the device's own node selection, where the slice leaves it that, admits the node."""
    return slice_.nodes is not None or (device.nodes is not None and matches(device.nodes, node))


def selection_of(request: Request, claim: str, classes: Mapping[str, DeviceClass]) -> Selection:
    """The compiled selectors of a request.

    Raises SelectorError for an unknown class or a text that is wrong, UnsupportedError for one
    that Dragoon cannot evaluate.
    """
    class_ = classes.get(request.class_name)
    if class_ is None:
        raise SelectorError(
            f"claim {claim}, request {request.name}: there is no DeviceClass {request.class_name}",
            hint=f"known are {', '.join(sorted(classes)) or 'none'}",
        )
    return Selection(
        _compiled(class_.selectors, f"class {class_.name}"),
        _compiled(request.selectors, f"claim {claim}, request {request.name}"),
    )


def _compiled(texts: tuple[str, ...], owner: str) -> tuple[Selector, ...]:
    return tuple(_one(text, f"{owner}: selector {position}") for position, text in enumerate(texts))


def _one(text: str, owner: str) -> Selector:
    try:
        return Selector(owner, text, compile_selector(text))
    except InvalidInputError as error:
        raise SelectorError(f"{owner}: {error.message}") from error
    except UnsupportedError as error:
        raise UnsupportedError(f"{owner}: {error.message}", hint=error.hint) from error
