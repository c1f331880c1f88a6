"""Product names in selectors: short names, and parts that other products have too (case C11)."""

import re
from collections.abc import Iterator
from typing import Final

from dragoon.cel import DeviceView, compile_selector, device_view
from dragoon.cel.syntax import Call, Literal
from dragoon.diagnose.linting import wording
from dragoon.diagnose.linting.finding import Context, Finding, Place
from dragoon.diagnose.linting.reading import Read, Reads, compared_with
from dragoon.diagnose.manifests import mapping
from dragoon.diagnose.vocabulary import PRODUCTS
from dragoon.errors import DragoonError
from dragoon.publish.attributes import PRODUCT

_PARTIAL: Final = frozenset(("contains", "matches", "startsWith", "endsWith"))
_MODEL: Final = re.compile(r"[A-Za-z]*[0-9]+[A-Za-z]*")
_SIZE: Final = re.compile(r"[0-9]+GB?", re.IGNORECASE)


def check(place: Place, found: Reads, context: Context) -> Iterator[Finding]:
    """Tests on the product name that find nothing, or more than is meant."""
    for read in found.reads:
        if read.name != PRODUCT or read.kind != "attributes" or read.domain != context.driver:
            continue
        names = _names(context)
        compared = compared_with(read)
        if compared is not None and compared[0] == "==" and isinstance(compared[1], str):
            yield from _short(place, found, read, compared[1], names)
        for call in _partial_tests(read):
            yield from _ambiguous(place, found, read, call, names)


def whole_word(found: Reads, read: Read, word: str) -> str:
    """The expression with a test for a whole word of the product name in place of `== word`."""
    if read.parent is None or not word or not re.fullmatch(r"[A-Za-z0-9 -]+", word):
        return ""
    return wording.replaced(found, read.parent, _word_test(found, read, word))


def _word_test(found: Reads, read: Read, word: str) -> str:
    return f"{wording.map_text(found, read)}.{PRODUCT}.matches('\\\\b{word}\\\\b')"


def _names(context: Context) -> tuple[str, ...]:
    """Product names: those known here, and those of the cluster."""
    names = [mapping(mapping(d.raw.get("attributes")).get(PRODUCT)) for d in context.devices]
    return tuple(dict.fromkeys([*PRODUCTS, *(str(n["string"]) for n in names if "string" in n)]))


def _short(
    place: Place, found: Reads, read: Read, word: str, names: tuple[str, ...]
) -> Iterator[Finding]:
    full = [name for name in names if word.lower() in name.lower()]
    if word in names or not full:
        return
    message = f"{PRODUCT} == '{word}': the name is the full marketing name, such as '{full[0]}'"
    yield place.finding("DRG408", message, whole_word(found, read, word))


def _partial_tests(read: Read) -> Iterator[Call]:
    """The calls around a read that test a part of it."""
    for node in wording.nodes(read.test):
        if (
            isinstance(node, Call)
            and node.function in _PARTIAL
            and node.target is not None
            and any(one is read.node for one in wording.nodes(node.target))
        ):
            yield node


def _ambiguous(
    place: Place, found: Reads, read: Read, call: Call, names: tuple[str, ...]
) -> Iterator[Finding]:
    words = [word for word in _MODEL.findall(_constant(call)) if not _SIZE.fullmatch(word)]
    if len(words) != 1:
        return
    word = words[0].upper()
    matched = _matched(found.part(call), read.domain, names)
    models = {
        model.upper() for name in matched for model in _MODEL.findall(name) if word in model.upper()
    }
    others = sorted(models - {word})
    if word not in models or not others:
        return
    example = next(name for name in matched if others[0] in name.upper())
    message = f"{found.part(call)} also finds {', '.join(others)}, such as '{example}'"
    yield place.finding("DRG409", message, _unambiguous(found, read, call, word))


def _constant(call: Call) -> str:
    match call.args:
        case (Literal(value=str() as value),):
            return value
        case _:
            return ""


def _unambiguous(found: Reads, read: Read, call: Call, word: str) -> str:
    return wording.replaced(found, call, _word_test(found, read, word))


def _matched(text: str, driver: str, names: tuple[str, ...]) -> list[str]:
    """The names for which a part of an expression is true; none if it cannot stand alone."""
    try:
        program = compile_selector(text)
        return [name for name in names if program.evaluate(_device(driver, name))]
    except DragoonError:
        return []


def _device(driver: str, name: str) -> DeviceView:
    return device_view(driver, {"attributes": {PRODUCT: {"string": name}}})
