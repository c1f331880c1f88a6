"""Other texts for an expression: corrected, guarded, with another name or number.

Whatever is offered compiles; where nothing does, the answer is empty.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from dragoon import quantity, semver
from dragoon.cel import CompileError, compile_selector
from dragoon.cel.library import FUNCTIONS
from dragoon.cel.parser import parse
from dragoon.cel.syntax import Call, Literal, Node
from dragoon.diagnose.linting.reading import Read, Reads, compared_with
from dragoon.diagnose.near import near
from dragoon.errors import DragoonError, InvalidInputError

_ORDERED: Final = frozenset(("<", "<=", ">", ">=", "=="))
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def compiles(text: str) -> bool:
    """Whether it is a selector."""
    try:
        compile_selector(text)
    except DragoonError:
        return False
    return True


def first_that_compiles(texts: Iterable[str]) -> str:
    """The first text that is a selector, empty if none is."""
    return next(filter(compiles, texts), "")


def nodes(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for child in node.children():
        yield from nodes(child)


def corrected(text: str, error: CompileError) -> str:
    """The text with its mistake undone, empty where that is not known."""
    return first_that_compiles(_corrections(text, error.offset))


def _corrections(text: str, offset: int) -> Iterator[str]:
    if text[offset : offset + 1] == "=":
        yield f"{text[:offset]}={text[offset:]}"
    try:
        tree = parse(text)
    except DragoonError:
        return
    for node in nodes(tree):
        match node:
            case Call(function=operator, args=(left, right), target=None) if operator in _ORDERED:
                before, after = text[: node.start], text[node.end :]
                one, other = text[left.start : left.end], text[right.start : right.end]
                for wrapped in _wrapped(other, right):
                    yield f"{before}{one}.compareTo({wrapped}) {operator} 0{after}"
            case Call(function=name) if name not in FUNCTIONS:
                close = near(name, (known for known in FUNCTIONS if _IDENTIFIER.match(known)))
                if close:
                    yield re.sub(rf"\b{re.escape(name)}(?=\s*\()", close, text)
            case _:
                continue


def _wrapped(text: str, node: Node) -> Iterator[str]:
    """The right side of a comparison as a quantity or a version, if it can be one."""
    if not isinstance(node, Literal):
        yield text
        return
    for name, read in (("quantity", quantity.parse), ("semver", semver.parse)):
        with contextlib.suppress(InvalidInputError):
            read(str(node.value))
            yield f"{name}({text})"


def map_text(found: Reads, read: Read) -> str:
    """The map that is read from, as it is written; in full where it is written as a variable."""
    written = found.part(read.map_node)
    return written if written.startswith("device.") else f"device.{read.kind}['{read.domain}']"


def guarded(found: Reads, read: Read) -> str:
    """The expression with a test for the read before the part that fails without it."""
    map_ = map_text(found, read).replace("[?", "[").replace(".?", ".")
    is_name = _IDENTIFIER.match(read.name)
    guard = f"has({map_}.{read.name})" if is_name else f"'{read.name}' in {map_}"
    text, test = found.text, read.test
    return first_that_compiles(
        (f"{text[: test.start]}{guard} && {text[test.start :]}", f"{guard} && ({text})")
    )


def replaced(found: Reads, node: Node, text: str) -> str:
    """The expression with another text for one node."""
    return first_that_compiles((f"{found.text[: node.start]}{text}{found.text[node.end :]}",))


def renamed(found: Reads, read: Read, name: str) -> str:
    """The expression with the read of another name in the same map, or in that of its domain."""
    domain, slash, short = name.rpartition("/")
    map_ = f"device.{read.kind}['{domain}']" if slash else map_text(found, read)
    return replaced(found, read.node, f"{map_}.{short}")


def in_domain(found: Reads, read: Read, domain: str) -> str:
    """The expression with the read in another domain."""
    return replaced(found, read.node, f"device.{read.kind}['{domain}'].{read.name}")


def as_capacity(found: Reads, read: Read, name: str) -> str:
    """The expression with the read as the capacity `name`, compared as quantities are."""
    map_ = map_text(found, read).replace("device.attributes", "device.capacity", 1)
    compared = compared_with(read)
    if compared is None or read.parent is None:
        return ""
    operator, constant = compared
    try:
        amount = str(quantity.parse(str(constant)))
    except InvalidInputError:
        return ""
    first = found.text[read.parent.start : read.parent.end].startswith(found.part(read.node))
    if not first:
        operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
    text = f"{map_}.{name}.compareTo(quantity('{amount}')) {operator} 0"
    return replaced(found, read.parent, text)


def as_attribute(found: Reads, read: Read) -> str:
    """The expression with the read as an attribute instead of a capacity."""
    map_ = map_text(found, read).replace("device.capacity", "device.attributes", 1)
    return replaced(found, read.node, f"{map_}.{read.name}")


def quantities(text: str) -> Iterator[tuple[Node, quantity.Quantity]]:
    """Every constant in `quantity('...')`, with its value."""
    for node in nodes(parse(text)):
        match node:
            case Call(function="quantity", args=(Literal(value=str() as amount) as constant,)):
                try:
                    yield constant, quantity.parse(amount)
                except InvalidInputError:
                    continue


def with_constant(text: str, node: Node, constant: str) -> str:
    """The expression with another text constant, empty if that does not compile."""
    return first_that_compiles((f"{text[: node.start]}'{constant}'{text[node.end :]}",))
