"""The chart as Helm renders it. Helm is built from its Go module, as the cluster's programs are."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from realcluster import builds, versions

CHART = Path(__file__).resolve().parents[2] / "charts/dragoon"
IMAGE = ("--set", "image.repository=registry.test/dragoon")

Object = dict[str, Any]
Render = Callable[..., list[Object]]


@pytest.fixture(scope="session")
def helm() -> str:
    """The program. Without Go the tests are skipped, but never in CI."""
    if shutil.which("go") is None:
        why = "Go is needed to build Helm"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    return str(builds.build(versions.helm()) / "helm")


@pytest.fixture(scope="session")
def template(helm: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `helm template` for a version of Kubernetes."""

    def run(
        *arguments: str, kubernetes: str = "1.37.2", namespace: str = "dragoon-system"
    ) -> subprocess.CompletedProcess[str]:
        command = [helm, "template", "dragoon", str(CHART), "--namespace", namespace]
        return subprocess.run(
            [*command, "--kube-version", kubernetes, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def render(template: Callable[..., subprocess.CompletedProcess[str]]) -> Render:
    """The objects that these values give."""

    def run(*arguments: str, **more: str) -> list[Object]:
        done = template(*IMAGE, *arguments, **more)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]

    return run
