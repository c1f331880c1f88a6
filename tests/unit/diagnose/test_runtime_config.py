"""Case C31: a runtime that ignores CDI, or reads another folder, starts pods without a GPU."""

import pytest

from dragoon.diagnose.runtime_config import container_problem, read_config
from dragoon.errors import InvalidInputError

OURS = "/var/run/cdi"
NEW = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\n"
OLD = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'


@pytest.mark.parametrize(
    "text",
    [
        NEW,
        NEW.replace("3", "4", 1),
        f"{NEW}enable_cdi = true\n",
        f"{NEW}cdi_spec_dirs = ['/etc/cdi', '/run/cdi/']\n",
        f"{OLD}enable_cdi = true\n",
        f"{OLD}enable_cdi = true\ncdi_spec_dirs = ['/var/run/cdi']\n",
        "[crio.runtime]\n",
        "[crio.runtime]\ncdi_spec_dirs = ['/etc/cdi', '/var/run/cdi']\n",
    ],
)
def test_c31_a_runtime_that_reads_our_folder_has_no_problem(text: str) -> None:
    found = read_config(text, OURS)
    assert found.on
    assert found.problems == ()


def test_c31_cdi_that_is_off_is_told_with_the_line_to_write() -> None:
    found = read_config(f"{NEW}enable_cdi = false\n", OURS)
    assert found.on is False
    (problem,) = found.problems
    assert "set enable_cdi = true under [plugins.'io.containerd.cri.v1.runtime']" in problem


def test_c31_an_old_file_that_does_not_say_is_not_taken_for_on() -> None:
    found = read_config(OLD, OURS)
    assert found.on is None
    (problem,) = found.problems
    assert "before containerd 2.0 it is off" in problem
    assert "io.containerd.grpc.v1.cri" in problem


@pytest.mark.parametrize("head", [NEW, f"{OLD}enable_cdi = true\n", "[crio.runtime]\n"])
@pytest.mark.parametrize("folders", ["[]", "['/etc/cdi']", "['/opt/cdi', '/var/run/cdi.d']"])
def test_c31_a_folder_that_is_not_read_is_told_with_those_that_are(head: str, folders: str) -> None:
    found = read_config(f"{head}cdi_spec_dirs = {folders}\n", OURS)
    (problem,) = found.problems
    assert f"our specs are in {OURS}" in problem
    assert all(folder in problem for folder in found.folders)


def test_c31_a_runtime_behind_cri_dockerd_gets_no_ids() -> None:
    found = read_config('{"features": {"cdi": true}}', OURS)
    assert found.on is False
    assert "cri-dockerd" in found.problems[0]


def test_a_file_that_imports_others_is_only_a_part_of_the_truth() -> None:
    (problem,) = read_config(f"imports = ['/etc/containerd/conf.d/*.toml']\n{NEW}", OURS).problems
    assert "containerd config dump" in problem


@pytest.mark.parametrize("text", ["", "a = 1\n", "not toml", "[plugins\n"])
def test_text_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="runtime's configuration"):
        read_config(text, OURS)


@pytest.mark.parametrize(
    "text",
    [f"{NEW}enable_cdi = 'yes'\n", f"{NEW}cdi_spec_dirs = 7\n", "version = 'x'\nplugins = 1\n"],
)
def test_values_of_a_wrong_type_are_no_crash(text: str) -> None:
    assert read_config(text, OURS).runtime == "containerd"


def test_c31_a_container_without_our_variables_is_a_finding_though_prepare_succeeded() -> None:
    assert "applied no CDI spec of ours" in container_problem("PATH=/bin\nHOME=/root\n")
    assert container_problem("PATH=/bin\nDRAGOON_GPU_0000_65_00_0=GPU-1\n") == ""
