"""Kubernetes Quantity, exact: parse, compare, add, subtract, canonical form.

May import nothing but the standard library and dragoon.errors. Nothing here is a float, except
the one function whose name says so.

Source of the facts: k8s.io/apimachinery 0.37.2 `pkg/api/resource`. That library keeps an amount
either as a 64-bit integer with a decimal exponent or, where that is too small, as a big decimal.
Most users never see the difference, but CEL does (`isInteger` is false for a big decimal), so it
is kept here as `wide`.
"""

import enum
import math
import re
from dataclasses import dataclass, replace
from functools import total_ordering
from typing import Final

from dragoon.errors import InvalidInputError


class Format(enum.Enum):
    """The kind of suffix a quantity was written with, and is written with again."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?P<point>\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)",
    re.ASCII,
)
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", *_BINARY)

_INT64_DIGITS: Final = 18
"""Decimal digits that always fit 64 bits."""
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_NANO: Final = -9
"""The smallest power of ten a parsed quantity keeps; more digits are rounded away from zero."""
_LARGEST_SCALE: Final = 2_000
"""The largest power of ten that is written out in nano units: beyond it, it would eat memory."""
_DIGITS_LIMIT: Final = 2_000
"""Digits a number may need when written out; beyond it, it is refused: it would eat memory."""
_KIBI: Final = 1024


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`unscaled` times ten to the power of `scale`.

    Equality, order and hash look at the value only: 1Ki equals 1024. format decides how it is
    written. wide: see the module.
    """

    unscaled: int
    scale: int = 0
    format: Format = Format.DECIMAL
    wide: bool = False

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1, as this one is less than, equal to or greater than the other."""
        left, right = self.unscaled, other.unscaled
        if self.scale != other.scale:
            if self.sign != other.sign or not left:
                return (self.sign > other.sign) - (self.sign < other.sign)
            # Sizes first: an exponent may be too large to be multiplied out.
            sizes = _magnitude(self), _magnitude(other)
            if sizes[0] != sizes[1]:
                return self.sign if sizes[0] > sizes[1] else -self.sign
            lowest = min(self.scale, other.scale)
            left *= 10 ** (self.scale - lowest)
            right *= 10 ** (other.scale - lowest)
        return (left > right) - (left < right)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.compare(other) == 0

    def __lt__(self, other: "Quantity") -> bool:
        return self.compare(other) < 0

    def __hash__(self) -> int:
        return hash(_reduced(self.unscaled, self.scale))

    def __add__(self, other: "Quantity") -> "Quantity":
        """The sum. Zero takes the other's format.

        Raises InvalidInputError where the exponents are too far apart to be written out.
        """
        return _sum(self, other, narrowly=other)

    def __neg__(self) -> "Quantity":
        return replace(self, unscaled=-self.unscaled)

    def __sub__(self, other: "Quantity") -> "Quantity":
        """The difference; see `+`.

        As in Go, the smallest 64-bit integer is its own negative where the result is narrow.
        """
        negative = -other
        wraps = other.unscaled == _INT64_MIN
        return _sum(self, negative, narrowly=other if wraps else negative)

    def as_int64(self) -> int | None:
        """The value as Kubernetes' fast conversion to a 64-bit integer gives it.

        None where that conversion does not work: a fraction (also one that is zero, such as
        `1000m`), a value beyond 64 bits, or one that is kept wide.
        """
        if self.wide or self.scale < 0:
            return None
        return _scaled(self.unscaled, self.scale)

    def as_approximate_float(self) -> float:
        """The value as a double, with the rounding of Kubernetes' AsApproximateFloat64.

        Infinite where a double is too small.
        """
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = math.inf if self.unscaled > 0 else -math.inf
        return base if self.scale == 0 else base * float(f"1e{self.scale}")

    def as_approximate_int(self) -> int:
        """The same as a whole number, and at most what 64 bits hold."""
        return int(max(_INT64_MIN, min(_INT64_MAX, self.as_approximate_float())))

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that loses nothing."""
        if not self.unscaled:
            return "0"
        kind = self.format
        if kind is Format.BINARY:
            whole = self._whole()
            if whole is not None and abs(whole) >= _KIBI:
                return _binary_text(whole)
            kind = Format.DECIMAL
        digits, scale = _reduced(self.unscaled, self.scale)
        target = scale - scale % 3
        if kind is Format.DECIMAL:
            target = min(target, _DECIMAL["E"])
        digits *= 10 ** (scale - target)
        if kind is Format.DECIMAL:
            return f"{digits}{_DECIMAL_SUFFIX[target]}"
        return f"{digits}e{target}" if target else str(digits)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _whole(self) -> int | None:
        """The value as an integer of any size, None where it has a fraction."""
        if self.scale >= 0:
            return self.unscaled * int(10**self.scale)
        whole, rest = divmod(self.unscaled, 10**-self.scale)
        return None if rest else whole


ZERO: Final = Quantity(0)


def parse(text: str) -> Quantity:
    """Reads `40Gi`, `1500m`, `1e3`, `-0.5`.

    Accepts exactly what Kubernetes accepts, including most suffixes without a number: zero.
    Raises InvalidInputError for anything else.
    """
    found = _TEXT.fullmatch(text)
    if not text or found is None:
        raise _invalid(text)
    if len(text) > _DIGITS_LIMIT:
        raise InvalidInputError(
            f"quantity: found {len(text)} characters, allowed are {_DIGITS_LIMIT}"
        )
    whole = found["whole"] or "0"
    fraction = found["fraction"] or ""
    negative = found["sign"] == "-"
    base, exponent, kind = _suffix(found["suffix"], text)
    narrow = _parse_narrow(whole, fraction, base, exponent)
    if narrow is not None:
        unscaled, scale = narrow
        return Quantity(-unscaled if negative else unscaled, scale, kind)
    if not (found["zeros"] or found["whole"] or fraction):
        # Kubernetes takes a missing number for zero, except on its way for wide amounts.
        raise _invalid(text)
    unscaled, scale = int(whole + fraction), -len(fraction)
    if base == 10:
        scale += exponent
    else:
        unscaled <<= exponent
    unscaled, scale = _at_nano(unscaled, scale)
    if kind is Format.BINARY:
        if _exceeds_int64(unscaled, scale):
            unscaled, scale = _INT64_MAX, 0
        elif unscaled and unscaled < 10**-scale:
            kind = Format.DECIMAL
    return Quantity(-unscaled if negative else unscaled, scale, kind, wide=True)


def nanos(amount: Quantity) -> int:
    """The exact amount in nano units: the finest that a parsed quantity keeps.

    Raises InvalidInputError for an exponent beyond 2,000.
    """
    if amount.scale > _LARGEST_SCALE:
        raise InvalidInputError(
            f"quantity: found the exponent {amount.scale}, allowed are up to {_LARGEST_SCALE}"
        )
    return int(amount.unscaled * 10 ** (amount.scale - _NANO))


def _invalid(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"quantity: found {text!r}, allowed is a number with a suffix such as Ki, Mi, Gi, m, k, M, "
        "G or an exponent such as e3"
    )


def _suffix(suffix: str, text: str) -> tuple[int, int, Format]:
    """Base, exponent and format that a suffix means."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Format.DECIMAL
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Format.BINARY
    digits = suffix[1:]
    if suffix[0] not in "eE" or not digits.lstrip("+-").isdigit():
        raise _invalid(text)
    exponent = int(digits)
    if not _INT64_MIN <= exponent <= _INT64_MAX:
        raise _invalid(text)
    # Kubernetes keeps 32 bits of the exponent without a check.
    return 10, (exponent + 2**31) % 2**32 - 2**31, Format.EXPONENT


def _parse_narrow(whole: str, fraction: str, base: int, exponent: int) -> tuple[int, int] | None:
    """The amount as 64-bit integer and decimal exponent, None where Kubernetes keeps it wide."""
    if base == 10:
        scale, factor = exponent - len(fraction), 1
        if len(whole) + len(fraction) > _INT64_DIGITS or scale < _NANO:
            return None
    else:
        # Digits that the factor takes away, as Kubernetes estimates them.
        spare = 15 - len(whole) - exponent * 3 // 10 - 1
        if fraction or spare < 0:
            return None
        scale, factor = 0, 1 << exponent
    unscaled = int(whole + fraction) * factor
    return (unscaled, scale) if unscaled <= _INT64_MAX else None


def _at_nano(unscaled: int, scale: int) -> tuple[int, int]:
    """The same amount, rounded up, counted in nano: what Kubernetes does to wide amounts.

    Where the exponent is so large that this only eats memory, the amount stays as it is.
    """
    if not unscaled or scale > _DIGITS_LIMIT:
        return unscaled, scale
    if _NANO - scale > 2 * _DIGITS_LIMIT:
        return 1, _NANO  # No text has so many digits that anything else is left of it.
    if scale < _NANO:
        return -(-unscaled // 10 ** (_NANO - scale)), _NANO
    return unscaled * 10 ** (scale - _NANO), _NANO


def _exceeds_int64(unscaled: int, scale: int) -> bool:
    """Whether unscaled (not negative) times 10**scale, scale <= 0, is beyond 64 bits."""
    limit: int = _INT64_MAX * 10**-scale
    return unscaled > limit


def _sum(left: Quantity, right: Quantity, *, narrowly: Quantity) -> Quantity:
    """The sum. narrowly: what stands for `right` where both and the result are narrow."""
    kind = left.format if left.unscaled else right.format
    if not left.wide and not right.wide:
        narrow = _add_narrow(left, narrowly)
        if narrow is not None:
            return replace(narrow, format=kind)
    scale = min(left.scale, right.scale)
    if max(_magnitude(left), _magnitude(right)) - scale > _DIGITS_LIMIT:
        raise InvalidInputError(
            f"quantity: the sum of {left} and {right} has more than {_DIGITS_LIMIT} digits"
        )
    total = left.unscaled * 10 ** (left.scale - scale)
    total += right.unscaled * 10 ** (right.scale - scale)
    return Quantity(total, scale, kind, wide=True)


def _add_narrow(left: Quantity, right: Quantity) -> Quantity | None:
    """The sum of two narrow quantities if it is narrow too."""
    if not right.unscaled:
        return left
    if not left.unscaled:
        return right
    scale = min(left.scale, right.scale)
    a = _scaled(left.unscaled, left.scale - scale)
    b = _scaled(right.unscaled, right.scale - scale)
    if a is None or b is None or not _INT64_MIN <= a + b <= _INT64_MAX:
        return None
    return Quantity(a + b, scale)


def _scaled(value: int, power: int) -> int | None:
    """The value times ten to a power that is not negative, None beyond 64 bits."""
    if not value:
        return 0
    if power > _INT64_DIGITS:
        return None
    result: int = value * 10**power
    return result if _INT64_MIN <= result <= _INT64_MAX else None


def _magnitude(quantity: Quantity) -> int:
    """Where the first digit stands, as a power of ten."""
    return len(str(abs(quantity.unscaled))) + quantity.scale


def _reduced(unscaled: int, scale: int) -> tuple[int, int]:
    """The same value with all factors of ten in the scale; zero is (0, 0)."""
    if not unscaled:
        return 0, 0
    text = str(unscaled)
    zeros = len(text) - len(text.rstrip("0"))
    return unscaled // 10**zeros, scale + zeros


def _binary_text(whole: int) -> str:
    """A whole number with the largest binary suffix that divides it."""
    step = 0
    while whole % _KIBI == 0 and step < len(_BINARY):
        whole //= _KIBI
        step += 1
    return f"{whole}{_BINARY_SUFFIX[step]}"
