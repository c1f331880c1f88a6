"""Objects as people name them to kubectl: `pod/x`, `claim/x`, `gang/x`, `node/x`, and `-n`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dragoon.cli.given import TEXT
from dragoon.errors import InvalidInputError

_Command = TypeVar("_Command", bound=Callable[..., Any])

CLAIM: Final = "claim"
POD: Final = "pod"
GANG: Final = "gang"
NODE: Final = "node"

_NAMES: Final = {
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims"), CLAIM),
    **dict.fromkeys(("pod", "pods", "po"), POD),
    **dict.fromkeys(("gang", "gangs"), GANG),
    **dict.fromkeys(("node", "nodes", "no"), NODE),
}


@dataclass(frozen=True, slots=True)
class Named:
    """One object. kind: of the constants of this module."""

    kind: str
    name: str


def named(text: str, *allowed: str, bare: str = "") -> Named:
    """What `kind/name` means. bare: the kind that a name without one has, empty for none.

    Raises InvalidInputError for another kind, or none.
    """
    kind, slash, name = text.partition("/")
    if not slash and bare and text:
        return Named(bare, text)
    found = _NAMES.get(kind.lower(), "")
    if found not in allowed or not name or "/" in name:
        forms = " or ".join(f"{one}/NAME" for one in allowed)
        raise InvalidInputError(f"found {text!r}, allowed is {forms}")
    return Named(found, name)


def namespace_option(command: _Command) -> _Command:
    """Adds `-n`; the command gets it as `namespace`, None where it was not given."""
    return _option("Its namespace; without it that of the kubeconfig's context, as for kubectl.")(
        command
    )


def local_namespace_option(command: _Command) -> _Command:
    """Adds `-n` to a command that knows the claims of this node only."""
    return _option("Its namespace; without it a claim of that name in any.")(command)


def _option(text: str) -> Callable[[_Command], _Command]:
    return click.option("-n", "--namespace", type=TEXT, help=text)


def namespace_of(given: str | None, kubeconfig: Path | None, snapshot: Path | None = None) -> str:
    """The namespace that is meant; in a saved cluster `default` where none was given."""
    if given:
        return given
    if snapshot is not None:
        return "default"
    from dragoon.kube import contexts  # noqa: PLC0415 - reads YAML, and --help needs none

    return contexts.namespace(kubeconfig)


def local_claim(text: str | None, namespace: str | None) -> str | None:
    """A claim of this node, `claim/x` or `x`, as its journal knows it; None for all of them.

    `namespace/name` and UIDs are taken as they are. Raises InvalidInputError.
    """
    if text is None:
        return None
    kind, slash, _ = text.partition("/")
    if slash and kind.lower() not in _NAMES:
        return text
    name = named(text, CLAIM, bare=CLAIM).name
    return f"{namespace}/{name}" if namespace else name
