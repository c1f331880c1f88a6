"""NVIDIA's container toolkit: what it says that every container with a GPU needs.

`nvidia-ctk cdi generate` knows the libraries, sockets and hooks of each driver version; only its
common edits are used, since the device files of GPUs are ours (enforcement.md section 5.5, way A).
Not yet run on hardware.
"""

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from dragoon.errors import HardwareError
from dragoon.prepare import cdi
from dragoon.prepare.cdi import Edits, Hook

# Whatever has an environment of its own does not run with the container's (see `cdi_check`).
_HOOK_ENV: Final = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
_OF_ONE_GPU = re.compile(r"/dev/(nvidia\d+|nvidia-caps/.*|dri/.*)")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES="
_TIMEOUT_S = 20.0

Run = Callable[[Sequence[str], float], bytes]
"""Runs a program for at most so many seconds and returns what it wrote to its standard output."""


def run_program(arguments: Sequence[str], timeout: float) -> bytes:
    """The real `Run`. Raises HardwareError, retryable, when the program fails or takes too long."""
    try:
        done = subprocess.run(arguments, capture_output=True, timeout=timeout, check=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()[-500:]
        raise HardwareError(
            f"{arguments[0]} failed with status {error.returncode}: {said}", retryable=True
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HardwareError(f"cannot run {arguments[0]}: {error}", retryable=True) from error
    return done.stdout


def toolkit_edits(tool: Path, driver_root: Path, dev_root: Path, run: Run = run_program) -> Edits:
    """The toolkit's common edits, made safe. Blocks.

    Raises HardwareError when the tool fails, CdiError when it answers something else than a spec.
    """
    arguments = (
        str(tool),
        "--quiet",
        "cdi",
        "generate",
        "--format=json",
        f"--driver-root={driver_root}",
        f"--dev-root={dev_root}",
    )
    return common_of(cdi.decode(run(arguments, _TIMEOUT_S)))


def common_of(spec: cdi.Spec) -> Edits:
    """The edits for all devices of a foreign spec, without device files of single GPUs.

    Hooks without an environment get one: they would run as host root with the container's.
    """
    edits = spec.container_edits
    return msgspec.structs.replace(
        edits,
        env=tuple(entry for entry in edits.env if not entry.startswith(_VISIBLE)),
        device_nodes=tuple(n for n in edits.device_nodes if not _OF_ONE_GPU.fullmatch(n.path)),
        hooks=tuple(_safe(hook) for hook in edits.hooks),
    )


def _safe(hook: Hook) -> Hook:
    return hook if hook.env else msgspec.structs.replace(hook, env=_HOOK_ENV)
