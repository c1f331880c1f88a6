"""The driver is replaced under the plugin: the library is loaded anew, not only opened anew.

Each test is a process of its own: a library that was loaded here would be taken for the driver's.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pynvml
import pytest

from dragoon.errors import HardwareError
from dragoon.gpu.nvml.library import Library
from tests.scenario.enforcement_bench import compiled

# After its first start the kernel module is another one, and it says so with code 18.
OUTDATED = r"""
static int starts;
int nvmlInitWithFlags(unsigned flags) { return starts++ ? 18 : 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "version mismatch"; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { out[0] = '5'; out[1] = 0; return 0; }
"""
REPLACEMENT = OUTDATED.replace("starts++ ? 18 : 0", "0").replace("'5'", "'6'")
# As in the real one, by which the loader takes two files for the same library.
NAME = "-Wl,-soname,libnvidia-ml.so.1"


def install(folder: Path, source: str) -> None:
    """As a package does: a new file takes the place of the old one."""
    compiled(source, folder / "new", NAME).rename(folder / "libnvidia-ml.so.1")


def alone(work: Callable[[Path], None], folder: Path) -> None:
    """Does it in a process of its own; what is raised there is raised here."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        processes.submit(work, folder).result()


def test_the_library_of_a_replaced_driver_is_loaded_anew(tmp_path: Path) -> None:
    alone(replaced, tmp_path)


def test_while_only_the_old_library_is_there_it_says_so_and_the_next_look_tries_again(
    tmp_path: Path,
) -> None:
    alone(outdated_for_a_while, tmp_path)


def replaced(tmp_path: Path) -> None:
    install(tmp_path, OUTDATED)
    library = Library(folders=[tmp_path])
    with library.held():
        library.open()
        assert pynvml.nvmlSystemGetDriverVersion() == "5"
        library.shut()
    install(tmp_path, REPLACEMENT)

    with library.held():
        library.open()
        assert pynvml.nvmlSystemGetDriverVersion() == "6"
        library.shut()


def outdated_for_a_while(tmp_path: Path) -> None:
    install(tmp_path, OUTDATED.replace("starts++ ? 18 : 0", "18"))
    library = Library(folders=[tmp_path])
    with library.held():
        with pytest.raises(HardwareError, match="code 18") as caught:
            library.open()
        assert caught.value.retryable
        assert "reboot the node, or reload" in caught.value.hint
    install(tmp_path, REPLACEMENT)
    with library.held():
        library.open()
        library.shut()
