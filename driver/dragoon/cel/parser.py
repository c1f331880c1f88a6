"""Tokens to a tree, by the grammar of CEL. Recursion is bounded, whatever the text."""

from dataclasses import replace
from typing import Final

from dragoon.cel.errors import Source
from dragoon.cel.lexer import Token, check_int, negated, tokens
from dragoon.cel.macros import expanded
from dragoon.cel.syntax import (
    Call,
    Conditional,
    Entry,
    Ident,
    Index,
    Item,
    ListOf,
    Literal,
    Logical,
    MapOf,
    Node,
    Select,
)

MAX_LENGTH: Final = 10 * 1024
"""Bytes of an expression: the API's limit (resource.k8s.io/v1 CELSelectorExpressionMaxLength)."""
_MAX_NESTING: Final = 48
"""Brackets in brackets. Parsing, checking and evaluating recurse; Python's stack is small."""
_MAX_DEPTH: Final = 120
"""Levels of the tree; a chain such as a+b+c has one level per operator."""

_BINARY: Final = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 1),
    **dict.fromkeys(("+", "-"), 2),
    **dict.fromkeys(("*", "/", "%"), 3),
}
_TIGHTEST: Final = 3
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while", "in"),
    )
)


def parse(text: str) -> Node:
    """The tree of an expression.

    Raises CompileError with the position of a mistake, UnsupportedExpressionError for what is
    nested too deeply.
    """
    source = Source(text)
    if len(text.encode()) > MAX_LENGTH:
        raise source.wrong(0, f"{len(text.encode())} bytes long, allowed are {MAX_LENGTH}")
    tree = _Parser(source).whole()
    level, layer = 0, [tree]
    while layer:
        level += 1
        if level > _MAX_DEPTH:
            raise source.unsupported(layer[0].start, f"more than {_MAX_DEPTH} levels deep")
        layer = [child for node in layer for child in node.children()]
    return tree


class _Parser:
    """A recursive descent over the tokens of one expression."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = tokens(source)
        self._next = 0
        self._nesting = 0

    def whole(self) -> Node:
        tree = self._expression()
        if self._peek.kind != "end":
            raise self._unexpected()
        return tree

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, text: str) -> bool:
        if self._peek.kind == "op" and self._peek.text == text:
            self._next += 1
            return True
        return False

    def _expect(self, text: str) -> Token:
        if self._peek.kind != "op" or self._peek.text != text:
            raise self._unexpected(f", expected {text!r}")
        return self._take()

    def _unexpected(self, expected: str = "") -> Exception:
        token = self._peek
        found = "end of the expression" if token.kind == "end" else f"{token.text!r}"
        return self._source.wrong(token.start, f"unexpected {found}{expected}")

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise self._source.unsupported(
                self._peek.start, f"brackets nested more than {_MAX_NESTING} deep"
            )
        test = self._logical("||")
        if self._accept("?"):
            yes = self._logical("||")
            self._expect(":")
            no = self._expression()
            test = Conditional(test.start, no.end, test, yes, no)
        self._nesting -= 1
        return test

    def _logical(self, operator: str) -> Node:
        operands = [self._operand(operator)]
        while self._accept(operator):
            operands.append(self._operand(operator))
        if len(operands) == 1:
            return operands[0]
        return Logical(operands[0].start, operands[-1].end, tuple(operands), operator == "&&")

    def _operand(self, operator: str) -> Node:
        return self._logical("&&") if operator == "||" else self._binary(1)

    def _binary(self, level: int) -> Node:
        left = self._unary() if level == _TIGHTEST else self._binary(level + 1)
        while self._peek.kind in {"op", "ident"} and _BINARY.get(self._peek.text) == level:
            operator = self._take().text
            right = self._unary() if level == _TIGHTEST else self._binary(level + 1)
            left = Call(left.start, right.end, operator, (left, right))
        return left

    def _unary(self) -> Node:
        token = self._peek
        if token.kind != "op" or token.text not in {"!", "-"}:
            return self._member()
        if token.text == "-" and self._is_number(self._tokens[self._next + 1]):
            return self._member()
        count = 0
        while self._accept(token.text):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(token.start, operand.end, f"{token.text}_", (operand,))

    @staticmethod
    def _is_number(token: Token) -> bool:
        return token.kind == "literal" and type(token.value) in {int, float}

    def _member(self) -> Node:
        node = self._primary()
        while self._peek.kind == "op" and self._peek.text in {".", "["}:
            if self._accept("["):
                optional = self._accept("?")
                index = self._expression()
                node = Index(node.start, self._expect("]").end, node, index, optional)
            else:
                self._take()
                node = self._selection(node)
        if self._at("{") and isinstance(node, Ident | Select):
            raise self._source.unsupported(node.start, "Dragoon does not build message objects")
        return node

    def _selection(self, operand: Node) -> Node:
        optional = self._accept("?")
        name = self._peek
        if name.kind != "ident" or name.text == "in":
            raise self._unexpected(", expected a name")
        self._take()
        if not optional and self._accept("("):
            args, end = self._arguments(")")
            call = Call(operand.start, end, name.text, args, operand)
            return expanded(self._source, call)
        return Select(operand.start, name.end, operand, name.text, optional)

    def _arguments(self, closing: str) -> tuple[tuple[Node, ...], int]:
        found: list[Node] = []
        if not self._at(closing):
            found.append(self._expression())
            while self._accept(","):
                found.append(self._expression())
        return tuple(found), self._expect(closing).end

    def _at(self, text: str) -> bool:
        return self._peek.kind == "op" and self._peek.text == text

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == "literal":
            check_int(self._source, token)
            return Literal(token.start, token.end, token.value)
        if token.kind == "ident":
            return self._name(token)
        if token.kind == "op" and token.text == "-" and self._is_number(self._peek):
            number = negated(self._source, token, self._take())
            return Literal(number.start, number.end, number.value)
        if token.kind == "op" and token.text == "." and self._peek.kind == "ident":
            return self._name(self._take())
        if token.kind == "op" and token.text in "([{":
            return self._bracket(token)
        self._next -= 1
        raise self._unexpected()

    def _bracket(self, opening: Token) -> Node:
        if opening.text == "[":
            return self._list(opening)
        if opening.text == "{":
            return self._map(opening)
        inner = self._expression()
        return replace(inner, start=opening.start, end=self._expect(")").end)

    def _name(self, token: Token) -> Node:
        if self._accept("("):
            args, end = self._arguments(")")
            call = Call(token.start, end, token.text, args)
            return expanded(self._source, call)
        if token.text in _RESERVED:
            raise self._source.wrong(token.start, f"reserved identifier: {token.text}")
        return Ident(token.start, token.end, token.text)

    def _list(self, opening: Token) -> Node:
        items: list[Item] = []
        self._lone_comma("]")
        while not self._at("]"):
            optional = self._accept("?")
            items.append(Item(self._expression(), optional))
            if not self._accept(","):
                break
        return ListOf(opening.start, self._expect("]").end, tuple(items))

    def _lone_comma(self, closing: str) -> None:
        """`[,]` and `{,}` are empty, by the grammar."""
        after = self._tokens[self._next + 1 : self._next + 2]
        if self._at(",") and after and after[0].text == closing:
            self._take()

    def _map(self, opening: Token) -> Node:
        entries: list[Entry] = []
        self._lone_comma("}")
        while not self._at("}"):
            optional = self._accept("?")
            key = self._expression()
            self._expect(":")
            entries.append(Entry(key, self._expression(), optional))
            if not self._accept(","):
                break
        return MapOf(opening.start, self._expect("}").end, tuple(entries))
