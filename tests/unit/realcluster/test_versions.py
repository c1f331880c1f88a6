from typing import Any

import pytest

from realcluster import modfiles, versions
from realcluster.failure import ClusterError
from realcluster.versions import Version


def test_version_is_read_with_and_without_v() -> None:
    assert versions.parse("v1.37.2") == versions.parse("1.37.2") == Version(1, 37, 2)
    assert versions.parse("1.36.10") > versions.parse("1.36.9")


@pytest.mark.parametrize("text", ["1.37", "1.37.2-rc.0", "latest", "1.037.2", "../1.37.2", ""])
def test_what_is_no_released_version_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="is not a Kubernetes version"):
        versions.parse(text)


def test_version_without_a_module_says_how_to_get_one() -> None:
    with pytest.raises(ClusterError, match=r"cluster module --kubernetes 1\.2\.3"):
        versions.kubernetes(Version(1, 2, 3))


@pytest.mark.parametrize("text", versions.available())
def test_modules_in_the_repository_are_what_their_folder_says(text: str) -> None:
    version = versions.parse(text)
    module = versions.kubernetes(version)
    content = (module.folder / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{version} " in content
    assert f"k8s.io/api => k8s.io/api {version.staging}\n" in content
    assert (module.folder / "go.sum").is_file()
    assert f"gitVersion=v{version}" in module.ldflags


def test_default_version_has_a_module() -> None:
    assert versions.DEFAULT_KUBERNETES in versions.available()


def test_go_mod_replaces_staging_modules_by_published_ones() -> None:
    upstream: dict[str, Any] = {
        "Go": "1.26.0",
        "GoDebug": [{"Key": "default", "Value": "go1.26"}],
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.com/fork"}, "New": {"Path": "example.com/other"}},
        ],
    }
    text = modfiles.render(Version(1, 37, 2), upstream)
    assert "\tk8s.io/api => k8s.io/api v0.37.2\n" in text
    assert "example.com" not in text
    assert "godebug default=go1.26\n" in text
    assert "\tk8s.io/kubernetes/cmd/kubelet\n" in text


def test_go_mod_without_staging_modules_is_not_guessed() -> None:
    with pytest.raises(ClusterError, match="replaces no staging module"):
        modfiles.render(Version(1, 37, 2), {"Go": "1.26.0", "GoDebug": [], "Replace": None})
