"""What the Dockerfile says about the image: its last stage is the only source of it."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from realcluster.failure import ClusterError

_INSTRUCTION = re.compile(r"^([A-Z]+)\s+(.*)$", re.DOTALL)


@dataclass(frozen=True)
class Described:
    """The configuration of an image, as OCI's image spec names its parts."""

    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


def described(text: str) -> Described:
    """The configuration that the last stage of a Dockerfile gives."""
    found = Described()
    for name, value in _instructions(text):
        match name:
            case "FROM":
                found = Described()
            case "USER":
                found = _with(found, user=value)
            case "ENTRYPOINT":
                found = _with(found, entrypoint=_words(name, value))
            case "CMD":
                found = _with(found, command=_words(name, value))
            case "ENV":
                found.environment.update(_pairs(name, value))
            case "LABEL":
                found.labels.update(_pairs(name, value))
            case _:
                pass
    return found


def unused(path: Path) -> list[str]:
    """The patterns of files that both images leave out, below the folder of Python packages."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _with(found: Described, **changed: object) -> Described:
    return Described(**{**vars(found), **changed})


def _instructions(text: str) -> list[tuple[str, str]]:
    """Instruction and value, with continued lines joined; without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    matches = (_INSTRUCTION.match(line.strip()) for line in joined.splitlines() if line.strip())
    return [(match[1], match[2]) for match in matches if match]


def _words(name: str, value: str) -> list[str]:
    """The words of an instruction in its JSON form; the other form needs a shell."""
    try:
        words: list[str] = json.loads(value)
    except ValueError:
        raise ClusterError(f"Dockerfile: {name} {value}: only the JSON form is read") from None
    return words


def _pairs(name: str, value: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in shlex.split(value)]
    if not all(sign for _, sign, _ in pairs):
        raise ClusterError(f"Dockerfile: {name} {value}: only NAME=VALUE is read")
    return {key: content for key, _, content in pairs}
