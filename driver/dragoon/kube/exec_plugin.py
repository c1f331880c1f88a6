"""Credentials from the program that a user of a kubeconfig names under `exec`.

Run as client-go runs it (ExecCredential of client.authentication.k8s.io): what it says on stderr,
such as where to log in, goes to ours, and it may ask on the terminal if there is one.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import ConfigError

_KILLED_S: Final = 1.0
"""How long the end of a killed one is waited for: what it started may keep its output open."""


async def credentials(plugin: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The `status` of its answer. folder: of the kubeconfig, where a relative command is found.

    Whoever cancels this ends the program. Raises ConfigError; answers are not shown in it.
    """
    command = str(plugin.get("command") or "")
    version = plugin.get("apiVersion")
    if not command or not version:
        raise ConfigError("exec: found no command or no apiVersion, both are needed")
    process = await _started(plugin, folder / command if os.sep in command else Path(command))
    try:
        out, _ = await process.communicate()
    finally:
        await _ended(process)
    if process.returncode:
        raise ConfigError(f"exec plugin {command}: ended with {process.returncode}")
    try:
        answer = msgspec.json.decode(out)
    except UNDECODABLE as error:
        raise ConfigError(f"exec plugin {command}: printed no JSON") from error
    status = answer.get("status") if isinstance(answer, dict) else None
    if not isinstance(status, dict):
        raise ConfigError(f"exec plugin {command}: printed no status of an ExecCredential")
    if answer.get("apiVersion") != version:
        raise ConfigError(
            f"exec plugin {command}: speaks {answer.get('apiVersion')!r}, asked for {version!r}"
        )
    return status


async def _started(plugin: Mapping[str, Any], program: Path) -> Process:
    may_ask = sys.stdin.isatty() and plugin.get("interactiveMode") != "Never"
    asked = {
        "apiVersion": plugin["apiVersion"],
        "kind": "ExecCredential",
        "spec": {"interactive": may_ask},
    }
    added = {one["name"]: one["value"] for one in plugin.get("env") or ()}
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *(plugin.get("args") or ()),
            env={**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdin=None if may_ask else DEVNULL,
            stdout=PIPE,
        )
    except (OSError, ValueError) as error:
        hint = plugin.get("installHint")
        raise ConfigError(
            f"exec plugin {program}: cannot be run: {getattr(error, 'strerror', None) or error}",
            hint=str(hint) if hint else None,
        ) from error


async def _ended(process: Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        process.kill()
        async with asyncio.timeout(_KILLED_S):
            await process.wait()
