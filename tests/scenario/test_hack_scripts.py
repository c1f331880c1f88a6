"""Scripts refuse what they do not know before they set anything up, and say what they take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": "driver:hack:."},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("given", [["nope"], ["--check", "nope"], ["--chek"]])
@pytest.mark.parametrize("script", ["check", "proto"])
def test_a_script_that_is_given_what_it_does_not_know_does_nothing(
    script: str, given: list[str]
) -> None:
    done = run("sh", f"hack/{script}", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"hack/{script}: found '{' '.join(given)}', allowed is" in done.stderr
    assert f"Usage: hack/{script}" in done.stderr


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("script", ["check", "proto", "test"])
def test_a_script_says_what_it_takes_and_does_nothing(script: str, option: str) -> None:
    done = run("sh", f"hack/{script}", option)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: hack/{script}")


def test_chaos_names_its_campaigns() -> None:
    told = run(sys.executable, "-m", "chaoscampaign", "--help")
    assert told.returncode == 0
    assert "  node " in told.stdout
    assert "  gang " in told.stdout
    for name, option in (("node", "--kills"), ("gang", "--runs")):
        assert option in run(sys.executable, "-m", "chaoscampaign", name, "--help").stdout
    wrong = run(sys.executable, "-m", "chaoscampaign", "pod")
    assert wrong.returncode == 2
    assert "'pod'" in wrong.stderr
    assert "node" in wrong.stderr


def test_chaos_without_a_name_is_of_a_node() -> None:
    wrong = run(sys.executable, "-m", "chaoscampaign", "--kills", "many")
    assert wrong.returncode == 2
    assert "argument --kills: invalid int value: 'many'" in wrong.stderr
