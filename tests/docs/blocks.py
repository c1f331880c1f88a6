"""The code blocks of the pages, and what each says it is.

The first words after the fence say how a block is checked:

yaml             Kubernetes objects: `dragoon lint` finds nothing, an API server takes them
yaml CODE ...    objects in which `dragoon lint` finds just these checks
yaml file=PATH   the text of that file
yaml part=PATH   objects of that file, as it has them
yaml shape       objects of other projects: the pods, claims and classes in them are checked
yaml values      values of the chart
yaml settings    settings of the plugin
console          commands that are run here, and their output; `...` stands for anything
console cluster  the same on a real cluster (tests/e2e/test_user_docs.py)
sh               commands that need a registry, hardware or somebody's own names: their grammar
json             data
text             anything else: output, names
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_GENERATED: Final = frozenset(
    ("attributes.md", "checks.md", "cli.md", "configuration.md", "metrics.md", "refusals.md")
)
"""Made from the code, and compared with it by other tests."""
_FOR_DEVELOPERS: Final = frozenset(("ARCHITECTURE.md", "CONTRIBUTING.md"))

EVERY_PAGE: Final = tuple(
    sorted(
        [
            *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
            ROOT / "hack/README.md",
            ROOT / "charts/dragoon/README.md",
            ROOT / "deviceclasses/samples/README.md",
            *(ROOT / "docs").rglob("*.md"),
        ]
    )
)
PAGES: Final = tuple(page for page in EVERY_PAGE if page.name not in _GENERATED | _FOR_DEVELOPERS)

_FENCE: Final = re.compile(r"^(?P<indent> *)```(?P<kind>[^`]*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block. line: of its fence, from 1. kind: the words after the fence."""

    page: Path
    line: int
    kind: tuple[str, ...]
    text: str

    @property
    def language(self) -> str:
        return self.kind[0] if self.kind else ""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> tuple[Block, ...]:
    """Every block of every page, in the order of pages and lines."""
    return tuple(block for page in PAGES for block in blocks_of(page))


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of one page."""
    kind: tuple[str, ...] | None = None
    start, indent, lines = 0, "", list[str]()
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and kind is None:
            kind, start, indent, lines = tuple(fence["kind"].split()), number, fence["indent"], []
        elif fence and kind is not None:
            yield Block(page, start, kind, "\n".join(lines) + "\n")
            kind = None
        elif kind is not None:
            lines.append(line.removeprefix(indent))
    assert kind is None, f"{page}:{start}: the block does not end"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and what it is to print."""

    text: str
    output: str


def commands(block: Block) -> list[Command]:
    """The commands of a block with `$ ` before each, in their order."""
    found: list[tuple[list[str], list[str]]] = []
    continued = False
    for line in block.text.splitlines():
        if continued or line.startswith("$ "):
            if not continued:
                found.append(([], []))
            found[-1][0].append(line.removeprefix("$ "))
            continued = line.endswith("\\")
        else:
            assert found, f"{block.where}: a console block begins with a command"
            found[-1][1].append(line)
    return [
        Command("\n".join(words), "".join(f"{line}\n" for line in output))
        for words, output in found
    ]


def is_shown(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed: `...` is anything, a line of it alone any lines.

    Blanks at the end of lines do not count, and neither do empty lines at both ends.
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else _line(line) for line in _lines(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(printed))) is not None


def _line(shown: str) -> str:
    return ".*?".join(re.escape(part) for part in shown.split("...")) + "\n"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]
