"""What a node process needs before it serves: the kubelet's folder, and a look at the GPUs."""

import asyncio
from pathlib import Path
from typing import Final

import structlog

from dragoon.app.config import PluginConfig
from dragoon.errors import DriverMissingError, HardwareError, KubeletError
from dragoon.gpu.watching import InventoryWatch

_log = structlog.get_logger(__name__)

FIRST_LOOK_SECONDS: Final = 10.0
"""A driver that hangs for longer must not keep claims from being unprepared."""


def check_kubelet_root(config: PluginConfig) -> None:
    """Raises KubeletError where it is not there.

    The journal lies below it by default, and would make a folder that nobody looks at.
    """
    root = Path(config.kubelet_root)
    if not root.is_dir():
        raise KubeletError(
            f"kubeletRoot: {root} is not a folder",
            hint="set it to the kubelet's --root-dir, and mount it in a container",
        )


def waits_for_driver(config: PluginConfig, watch: InventoryWatch) -> bool:
    """Whether there is nothing to publish, and that is fine here."""
    missing = isinstance(watch.error, DriverMissingError)
    return missing and watch.current is None and config.without_driver == "wait"


async def look_first(config: PluginConfig, watch: InventoryWatch, seconds: float) -> None:
    """No driver is an end, unless it is waited for; one that fails or hangs is none.

    seconds: how long to wait for the cards. Raises DriverMissingError.
    """
    try:
        async with asyncio.timeout(seconds):
            await watch.look()
    except DriverMissingError:
        if not waits_for_driver(config, watch):
            raise
        _log.info("no NVIDIA driver on this node: nothing is published until there is one")
    except (HardwareError, TimeoutError) as error:
        _log.warning("starting without a look at the GPUs", error=str(error) or "no answer")
    except Exception:  # noqa: BLE001 - a defect must not keep claims from being unprepared
        _log.exception("starting without a look at the GPUs: it failed unexpectedly")
