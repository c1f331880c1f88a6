"""Questions to one card, each guarded on its own."""

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import pynvml

_T = TypeVar("_T")

_GONE = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "the driver says that the GPU is lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the driver says that the GPU needs a reset",
}
# How a card or an old driver says "I do not have this": not a fault.
ABSENT = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND})
UNREADABLE = -1
NONSENSE = (ValueError, LookupError, MemoryError)
"""What answers raise that cannot be: text that is not UTF-8, more entries than there was room for."""
_MOST_ENTRIES = 1024


def room(entries: int) -> int:
    """How many entries of a list a card says that it has. Raises ValueError for what none has."""
    if entries > _MOST_ENTRIES:
        raise ValueError(f"{entries} entries")
    return entries


class CardSilentError(Exception):
    """This card cannot be used; only inside gpu.nvml."""


class Asking:
    """The questions put to one card in one look, and what went wrong with them."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()

    @property
    def problems(self) -> tuple[str, ...]:
        """One line per kind of failure, in the order in which they came up."""
        return tuple(
            f"{what}: {text}" + (f" ({times} times)" if times > 1 else "")
            for (what, text), times in self._failures.items()
        )

    def answer(
        self, what: str, question: Callable[[], _T], *, normal: frozenset[int] = ABSENT
    ) -> tuple[_T | None, int]:
        """The answer and 0, or None and the NVML error code (UNREADABLE for broken text).

        Codes in `normal` are answers too: they are no problem of the card. Raises CardSilentError
        when the driver says that the card itself is gone.
        """
        try:
            return question(), pynvml.NVML_SUCCESS
        except pynvml.NVMLError as error:
            code = int(error.value)
            if code in _GONE:
                raise CardSilentError(_GONE[code]) from error
            if code not in normal:
                self._failures[what, f"{error} (code {code})"] += 1
            return None, code
        except NONSENSE as error:
            self._failures[what, f"cannot be read ({error})"] += 1
            return None, UNREADABLE

    def ask(self, what: str, question: Callable[[], _T]) -> _T | None:
        """The answer, or None when the card does not have it or fails to say it."""
        return self.answer(what, question)[0]

    def must(self, what: str, question: Callable[[], _T]) -> _T:
        """An answer without which the card cannot be told from others, else CardSilentError."""
        answer, code = self.answer(what, question)
        if not answer:
            raise CardSilentError(f"does not tell its {what} (NVML code {code})")
        return answer
