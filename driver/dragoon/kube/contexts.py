"""The namespace that a command means when none is given: as kubectl finds it.

Read from the same places as the connection (`connecting`), and from files alone: no server is
asked, and a file that cannot be read is not complained about here, for connecting does.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api.decoding import NOT_YAML
from dragoon.errors import InvalidInputError
from dragoon.kube.connecting import SERVICE_ACCOUNT
from dragoon.reading import text_of

DEFAULT: Final = "default"


def namespace(
    kubeconfig: Path | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> str:
    """That of the current context; in a pod the pod's own; else `default`."""
    listed = str(kubeconfig) if kubeconfig else environ.get("KUBECONFIG", "")
    if not listed and environ.get("KUBERNETES_SERVICE_HOST"):
        return _text(service_account / "namespace").strip() or DEFAULT
    if not listed:
        listed = str(Path(environ.get("HOME") or "/") / ".kube" / "config")
    return _of_context([_read(Path(one)) for one in listed.split(os.pathsep) if one]) or DEFAULT


def _of_context(files: list[Mapping[str, Any]]) -> str:
    """Of several files the first that says a thing wins, as in client-go."""
    current = next((one["current-context"] for one in files if one.get("current-context")), "")
    for file in files:
        contexts = file.get("contexts")
        for entry in contexts if isinstance(contexts, list) else ():
            if isinstance(entry, Mapping) and entry.get("name") == current:
                context = entry.get("context")
                return str((context if isinstance(context, Mapping) else {}).get("namespace") or "")
    return ""


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(text_of(file))
    except (InvalidInputError, *NOT_YAML):
        return {}
    return found if isinstance(found, Mapping) else {}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
