"""Functions of the environment: signatures for the checker, implementations for the evaluator.

A signature is written as CEL documents write it; what stands for any type is a type parameter or
dyn. At run time a function is chosen by the types of the values, as cel-go does.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from dragoon.cel.addresses import Address, Network
from dragoon.cel.errors import ExpressionFailedError
from dragoon.cel.formats import NamedFormat
from dragoon.cel.times import Duration, Timestamp
from dragoon.cel.types import (
    ADDRESS,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    FORMAT,
    INT,
    NETWORK,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
)
from dragoon.cel.urls import Url
from dragoon.cel.values import OptionalValue, UInt, no_such_overload
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity
from dragoon.semver import Version

_CLASSES: Final[dict[str, type]] = {
    BOOL.kind: bool,
    INT.kind: int,
    UINT.kind: UInt,
    DOUBLE.kind: float,
    STRING.kind: str,
    BYTES.kind: bytes,
    NULL.kind: type(None),
    QUANTITY.kind: Quantity,
    SEMVER.kind: Version,
    DURATION.kind: Duration,
    TIMESTAMP.kind: Timestamp,
    ADDRESS.kind: Address,
    NETWORK.kind: Network,
    URL.kind: Url,
    FORMAT.kind: NamedFormat,
    "list": tuple,
    "map": dict,
    "optional_type": OptionalValue,
}

_WITH_SUBCLASSES: Final = frozenset((dict, Quantity))
"""Classes whose subclasses are arguments too; UInt is none of int, nor bool."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. With member, the first parameter is the target."""

    params: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]
    member: bool

    def takes(self, classes: tuple[type, ...]) -> bool:
        """Whether values of these Python classes are arguments of this signature."""
        return len(classes) == len(self.params) and all(map(_is_instance, classes, self.params))


def _is_instance(class_: type, param: Type) -> bool:
    wanted = _CLASSES.get(param.kind)
    if wanted is None:
        return True
    return issubclass(class_, wanted) if wanted in _WITH_SUBCLASSES else class_ is wanted


class Dispatch:
    """Finds an implementation by the classes of the arguments, and remembers it."""

    def __init__(self, name: str, overloads: tuple[Overload, ...]) -> None:
        self.name = name
        self._overloads = overloads
        self.found: dict[tuple[type, ...], Callable[..., Any]] = {}

    def find(self, *values: Any) -> Callable[..., Any]:
        """The implementation for these values. Raises ExpressionFailedError if there is none."""
        classes = tuple(map(type, values))
        run = self.found.get(classes)
        if run is None:
            for overload in self._overloads:
                if overload.takes(classes):
                    run = self.found[classes] = overload.run
                    break
            else:
                raise no_such_overload(self.name, *values)
        return run


def function(run: Callable[..., Any], *params: Type, result: Type) -> Overload:
    """A signature called as `name(params)`."""
    return Overload(params, result, run, member=False)


def method(run: Callable[..., Any], *params: Type, result: Type) -> Overload:
    """A signature called as `first.name(others)`."""
    return Overload(params, result, run, member=True)


def translated(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function with input errors as failures of the expression."""

    def run_translated(*args: Any) -> Any:
        try:
            return run(*args)
        except InvalidInputError as error:
            raise ExpressionFailedError(error.message) from error

    return run_translated


def accepts(run: Callable[..., Any]) -> Callable[..., bool]:
    """Whether the function takes the input."""

    def is_accepted(*args: Any) -> bool:
        try:
            run(*args)
        except InvalidInputError:
            return False
        return True

    return is_accepted


Library = dict[str, tuple[Overload, ...]]
"""Functions by name."""


def merged(libraries: Iterable[Library]) -> Library:
    """All functions of several libraries; equal names join their signatures."""
    result: Library = {}
    for library in libraries:
        for name, overloads in library.items():
            result[name] = result.get(name, ()) + overloads
    return result
