"""Write the go.mod and go.sum that build one Kubernetes version.

k8s.io/kubernetes replaces its staging modules by folders of its own repository. A module that
depends on it must name the published version of each instead; everything else follows from that.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from realcluster.failure import ClusterError
from realcluster.versions import MODULES, Version

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")


def write(version: Version) -> Path:
    """Create `modules/kubernetes-<version>` from upstream's go.mod; return the folder."""
    text = render(version, _upstream(version))
    folder = MODULES / f"kubernetes-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text(text)
    _go(["mod", "tidy"], folder)
    return folder


def render(version: Version, upstream: dict[str, Any]) -> str:
    """The go.mod before `go mod tidy` has added the indirect requirements."""
    staging = sorted(
        entry["Old"]["Path"]
        for entry in upstream.get("Replace") or []
        if entry["New"]["Path"].startswith("./staging/")
    )
    if not staging:
        raise ClusterError(f"the go.mod of Kubernetes {version} replaces no staging module")
    defaults = [f"godebug {entry['Key']}={entry['Value']}" for entry in upstream["GoDebug"]]
    blocks = [
        ["module dragoon.test/kubernetes"],
        [f"go {upstream['Go']}"],
        defaults,
        ["tool (", *(f"\tk8s.io/kubernetes/cmd/{name}" for name in PROGRAMS), ")"],
        [f"require k8s.io/kubernetes v{version}"],
        ["replace (", *(f"\t{name} => {name} {version.staging}" for name in staging), ")"],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _upstream(version: Version) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        wanted = f"k8s.io/kubernetes@v{version}"
        downloaded = json.loads(_go(["mod", "download", "-json", wanted], Path(scratch)))
        parsed: dict[str, Any] = json.loads(
            _go(["mod", "edit", "-json", downloaded["GoMod"]], Path(scratch))
        )
    return parsed


def _go(arguments: list[str], folder: Path) -> str:
    environment = {**os.environ, "GOFLAGS": "", "GOWORK": "off"}
    done = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClusterError(f"go {' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout
