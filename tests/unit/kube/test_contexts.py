"""Which namespace is meant where none is given."""

from pathlib import Path

import pytest
import yaml

from dragoon.kube import contexts


def kubeconfig(file: Path, *, current: str = "", **spaces: str) -> Path:
    found = {
        "current-context": current,
        "contexts": [
            {"name": name, "context": {"namespace": space} if space else {}}
            for name, space in spaces.items()
        ],
    }
    file.write_text(yaml.safe_dump(found))
    return file


def test_it_is_that_of_the_current_context(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "c", current="b", a="team-a", b="team-b")
    assert contexts.namespace(file) == "team-b"
    assert contexts.namespace(environ={"KUBECONFIG": str(file)}) == "team-b"


def test_a_context_without_one_means_default(tmp_path: Path) -> None:
    assert contexts.namespace(kubeconfig(tmp_path / "c", current="a", a="")) == "default"


def test_of_several_files_the_first_that_says_it_wins(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "1", current="b", a="one")
    second = kubeconfig(tmp_path / "2", current="a", b="two")
    environ = {"KUBECONFIG": f"{first}:{second}"}
    assert contexts.namespace(environ=environ) == "two"


def test_in_a_pod_it_is_the_pods_own(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("here\n")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert contexts.namespace(environ=environ, service_account=tmp_path) == "here"


@pytest.mark.parametrize(
    "text", ["", "a: [", "- 1", "contexts: 3", "contexts: [1]", "a: 2026-13-45", "a: 0x_"]
)
def test_a_file_that_says_nothing_means_default(tmp_path: Path, text: str) -> None:
    (tmp_path / "c").write_text(text)
    assert contexts.namespace(tmp_path / "c") == "default"


def test_without_any_file_it_is_default(tmp_path: Path) -> None:
    assert contexts.namespace(environ={"HOME": str(tmp_path)}) == "default"
