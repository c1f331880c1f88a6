"""What is gathered of a node, from real files."""

from pathlib import Path

import pytest

from dragoon.app.config import PluginConfig
from dragoon.app.evidence import node
from dragoon.diagnose.checking import Unread
from dragoon.diagnose.checking.evidence import Evidence, KubeletFolders
from dragoon.diagnose.runtime_config import RuntimeCdi
from dragoon.errors import InvalidInputError

ON = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = true\n'


def host(root: Path, **files: str) -> PluginConfig:
    """A host's root folder with these files; `__` stands for `/`."""
    for name, text in files.items():
        file = root / name.replace("__", "/").replace("_toml", ".toml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return PluginConfig(host_root=str(root), kubelet_root=str(root / "kubelet"))


def test_the_runtime_is_found_where_it_has_its_configuration(tmp_path: Path) -> None:
    k3s = "var__lib__rancher__k3s__agent__etc__containerd__config_toml"
    found = node.runtime_config(host(tmp_path, **{k3s: ON}), None)
    assert isinstance(found, RuntimeCdi)
    assert (found.runtime, found.on) == ("containerd", True)


def test_a_configuration_that_imports_others_is_not_the_whole_truth(tmp_path: Path) -> None:
    text = 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + ON.replace("true", "false")
    config = host(tmp_path, etc__containerd__config_toml=text)
    found = node.runtime_config(config, None)
    assert isinstance(found, Unread)
    assert "containerd config dump" in found.why
    given = node.runtime_config(config, tmp_path / "etc/containerd/config.toml")
    assert isinstance(given, RuntimeCdi)
    assert given.on is False


def test_without_a_configuration_it_is_said_where_it_was_looked_for(tmp_path: Path) -> None:
    found = node.runtime_config(host(tmp_path), None)
    assert isinstance(found, Unread)
    assert str(tmp_path / "etc/crio/crio.conf") in found.why


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        ((), ("",)),
        (("kubelet",), ("plugins",)),
        (("kubelet/plugins",), ("plugins_registry",)),
        (("kubelet/plugins", "kubelet/plugins_registry"), ()),
    ],
)
def test_the_first_missing_folder_of_the_kubelet_is_named(
    tmp_path: Path, made: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    for one in made:
        (tmp_path / one).mkdir(parents=True)
    config = host(tmp_path)
    assert node.kubelet_folders(config) == KubeletFolders(tmp_path / "kubelet", missing)


async def test_folders_that_cannot_be_looked_into_cost_nothing_else(tmp_path: Path) -> None:
    """As those of a node for who is not root; here by a name that no file system takes."""
    refused = str(tmp_path / ("x" * 300))
    config = PluginConfig(
        kubelet_root=refused,
        cdi_root=refused,
        state_dir=str(tmp_path),
        simulate="t4",
        listen="127.0.0.1:1",
    )
    found = await node.gather(Evidence(), config, None)
    for part in (found.kubelet, found.cdi, found.sockets):
        assert isinstance(part, Unread)
        assert part.why.startswith(refused)
        assert part.why.endswith(": File name too long")
    assert found.driver_problem == ""
    assert not isinstance(found.journal, Unread)


def test_a_configuration_that_was_named_and_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="gone: No such file"):
        node.runtime_config(host(tmp_path), tmp_path / "gone")


@pytest.mark.parametrize(
    ("file", "machine", "expected"),
    [
        ("", "", False),
        ("", "dgx-h100", True),
        ("kubelet/x", "", True),
        ("proc/driver/nvidia/version", "", True),
    ],
)
def test_a_node_is_known_by_its_kubelet_its_driver_or_its_simulation(
    tmp_path: Path, file: str, machine: str, *, expected: bool
) -> None:
    if file:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    config = PluginConfig(
        kubelet_root=str(tmp_path / "kubelet"),
        proc_root=str(tmp_path / "proc"),
        simulate=machine,
    )
    assert node.is_node(config) is expected


def test_a_plugin_that_does_not_answer_is_not_judged() -> None:
    found = node.readiness(PluginConfig(listen="127.0.0.1:1"))
    assert isinstance(found, Unread)
    assert "http://127.0.0.1:1/readyz" in found.why
