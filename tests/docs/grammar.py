"""Whether a command line is one that its program takes: names, options, files, values."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import click

from dragoon.cli.main import root
from tests.docs.blocks import ROOT, Block, commands

_KUBECTL: Final = (
    *("annotate", "apply", "cordon", "create", "delete", "describe", "drain", "exec", "get"),
    *("label", "logs", "patch", "rollout", "uncordon", "wait"),
)
_VERBS: Final = {
    "kubectl": frozenset(_KUBECTL),
    "helm": frozenset(("install", "package", "template", "test", "uninstall", "upgrade")),
    "docker": frozenset(("build", "push")),
    "git": frozenset(("clone",)),
    "pip": frozenset(("install",)),
    "containerd": frozenset(("config",)),
}
_SCRIPTS: Final = frozenset(one.name for one in (ROOT / "hack").iterdir() if one.is_file())
_SEPARATORS: Final = frozenset(("|", "&&", ";", ">", "||"))
_SCHEMA: Final[Any] = json.loads((ROOT / "charts/dragoon/values.schema.json").read_text("utf-8"))


def invocations(block: Block) -> Iterator[list[str]]:
    """The words of each program that a block starts; redirections are left out."""
    if block.language == "console":
        lines = [one.text for one in commands(block)]
    else:
        lines = block.text.replace("\\\n", " ").splitlines()
    for line in lines:
        words: list[str] = []
        lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars="|&;>")
        lexer.whitespace_split = True
        for word in (*lexer, ";"):
            if word not in _SEPARATORS:
                words.append(word)
            elif words:
                yield words
                words = [_TARGET] if word == ">" else []


def problem(words: Sequence[str]) -> str | None:
    """What is wrong with a command line; None where nothing is."""
    program, *rest = words
    if program in {_TARGET, "cd"}:
        return None
    if program == "dragoon":
        return _of_dragoon(root, rest)
    if program.removeprefix("./").startswith("hack/"):
        name = program.removeprefix("./").removeprefix("hack/")
        return None if name in _SCRIPTS else "there is no such script"
    if program not in _VERBS:
        return "this program is not known to the tests"
    if not rest or rest[0] not in _VERBS[program]:
        return f"{program} has no such command"
    return _files(rest) or (_values(rest) if program == "helm" else None)


_TARGET: Final = ">"


def _of_dragoon(
    command: click.Command, words: Sequence[str], above: click.Context | None = None
) -> str | None:
    """What click says of the words, without running anything."""
    try:
        # With the context above it: a command keeps the names of its help option from the first.
        context = command.make_context(command.name, list(words), parent=above)
        left = [*context._protected_args, *context.args]
        if isinstance(command, click.Group) and left:
            _, below, rest = command.resolve_command(context, left)
            return "no such command" if below is None else _of_dragoon(below, rest, context)
    except click.exceptions.Exit:  # --help
        return None
    except click.ClickException as error:
        # A file of the reader's is there when the reader types this.
        said = error.format_message()
        return None if "No such file" in said else said
    return None


def _files(words: Sequence[str]) -> str | None:
    """A file or folder of this repository that is named and is not there."""
    for word in words:
        inside = word.split("=", 1)[-1]
        if (
            re.match(r"(docs|deploy|deviceclasses|charts)/", inside)
            and not (ROOT / inside).exists()
        ):
            return f"{inside} is not there"
    return None


def _values(words: Sequence[str]) -> str | None:
    """A value that is set and that the chart does not have."""
    for option, setting in pairwise(words):
        if option == "--set":
            for one in setting.split(","):
                path = one.split("=", 1)[0]
                if not _has(path.split("."), _SCHEMA):
                    return f"the chart has no value {path}"
    return None


def _has(path: Sequence[str], schema: Any) -> bool:
    for name in path:
        if "properties" not in schema:
            return True  # any value
        if name not in schema["properties"]:
            return False
        schema = schema["properties"][name]
    return True
