"""Which libnvidia-ml is loaded: a real shared library, that of the driver's own root folder."""

from pathlib import Path

import pytest

from dragoon.app import hardware
from dragoon.app.config import PluginConfig
from dragoon.errors import DriverMissingError
from tests.scenario.enforcement_bench import compiled

_DRIVER = r"""
#include <string.h>
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 0; return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned size) { strcpy(version, "570.1"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return 0; }
const char *nvmlErrorString(int code) { return "?"; }
"""


def _config(root: Path, driver_root: str = "/") -> PluginConfig:
    (root / "sys").mkdir()
    (root / "proc").mkdir()
    return PluginConfig(
        sys_root=str(root / "sys"),
        proc_root=str(root / "proc"),
        host_root=str(root / "host"),
        driver_root=driver_root,
    )


def _driver(root: Path) -> Path:
    folder = root / "usr/lib64"
    folder.mkdir(parents=True)
    return compiled(_DRIVER, folder / "libnvidia-ml.so.1")


@pytest.mark.parametrize("own_root", [False, True])
def test_the_library_is_that_of_the_driver_s_root_below_the_node_s(
    tmp_path: Path, own_root: bool
) -> None:
    driver_root = "/run/nvidia/driver" if own_root else "/"
    _driver(tmp_path / "host" / driver_root.lstrip("/"))
    config = _config(tmp_path, driver_root)
    assert hardware.look_once(config).driver_version == "570.1"


def test_a_library_that_cannot_be_loaded_is_told_by_name(tmp_path: Path) -> None:
    library = _driver(tmp_path / "host")
    library.write_bytes(b"nothing")
    config = _config(tmp_path)
    with pytest.raises(DriverMissingError, match=r"libnvidia-ml.so.1 cannot be loaded"):
        hardware.look_once(config)
