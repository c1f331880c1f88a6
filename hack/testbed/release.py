"""Dragoon as users install it: the image of hack/image, and the chart through Helm."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from imagebuild import command as image
from imagebuild.application import snapshot
from imagebuild.building import build
from realcluster import builds, versions
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from testbed.plugins import SYSTEM

CHART = Path(__file__).resolve().parents[2] / "charts/dragoon"
NAME = "dragoon"
_TIMEOUT = "10m"


def built_image(folder: Path) -> Path:
    """The archive of this checkout's image, in the folder."""
    archive = folder / "image.tar"
    build(snapshot(image.CHECKOUT, folder / "sources"), archive, image.NAME, image.store())
    return archive


def local_image() -> dict[str, Any]:
    """Values that take the image that was imported into the nodes."""
    repository, _, tag = image.NAME.rpartition(":")
    return {"repository": repository, "tag": tag, "pullPolicy": "Never"}


class Helm:
    """Helm against one cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._program = str(builds.build(versions.helm()) / "helm")
        self._folder = folder
        self._environment = {
            **cluster.environment(),
            "HELM_CACHE_HOME": str(folder / "cache"),
            "HELM_CONFIG_HOME": str(folder / "config"),
            "HELM_DATA_HOME": str(folder / "data"),
        }

    def package(self, chart: Path = CHART) -> Path:
        """`helm package`: the archive of a chart, as it would be published."""
        done = self._run("package", str(chart), "--destination", str(self._folder))
        return Path(done.rpartition(": ")[2].strip())

    def changed(self, version: str, folder: Path) -> Path:
        """A copy of the chart with another version, to be edited and packaged."""
        copy = folder / f"chart-{version}"
        shutil.copytree(CHART, copy)
        description = yaml.safe_load((copy / "Chart.yaml").read_text("utf-8"))
        description["version"] = version
        (copy / "Chart.yaml").write_text(yaml.safe_dump(description), "utf-8")
        return copy

    def install(self, package: Path, values: Mapping[str, Any]) -> str:
        return self._release("install", package, values)

    def upgrade(self, package: Path, values: Mapping[str, Any]) -> str:
        return self._release("upgrade", package, values)

    def test(self) -> str:
        """`helm test`, with what its pod said."""
        return self._run("test", NAME, "--namespace", SYSTEM, "--timeout", _TIMEOUT)

    def uninstall(self) -> str:
        return self._run("uninstall", NAME, "--namespace", SYSTEM, "--wait", "--timeout", _TIMEOUT)

    def _release(self, verb: str, package: Path, values: Mapping[str, Any]) -> str:
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values)), "utf-8")
        place = ["--namespace", SYSTEM, "--wait", "--timeout", _TIMEOUT]
        if verb == "install":
            place.append("--create-namespace")
        return self._run(verb, NAME, str(package), "--values", str(file), *place)

    def _run(self, *arguments: str) -> str:
        """What Helm said on both streams: the logs of hooks are on the second."""
        done = subprocess.run(
            [self._program, *arguments],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"helm {arguments[0]} failed: {done.stderr}{done.stdout}")
        return done.stderr + done.stdout
