"""Every object of the chart is taken by a real API server that refuses unknown and doubled fields.

The server that is named by DRAGOON_E2E_KUBECONFIG judges what is rendered for its own version and for
older ones.
"""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from realcluster import builds, versions
from testbed import version
from tests.chart.conftest import Object, Render
from tests.chart.test_rendering import VALUES
from tests.contract.kube.servers import REAL

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(REAL not in os.environ, reason=f"{REAL} is not set"),
]

# One of its own: that of an earlier run may still be going.
NAMESPACE = f"dragoon-{uuid.uuid4().hex[:8]}"
# Kinds of others, which this server does not have.
_FOREIGN = "monitoring.coreos.com/"
_WHOLE = ("--set", "gangs.enabled=false")
_OLD = (*_WHOLE, "--set", "admissionPolicies.voidVisibleDevices=false")
# Version -> what has to be said there, and which values are possible.
OLDER = {
    "1.35.4": (_OLD, ("defaults", "simulated", "hami", "operator", "elsewhere")),
    "1.36.3": (_WHOLE, tuple(name for name in VALUES if name not in {"no gangs", "bare"})),
    "1.37.2": ((), tuple(VALUES)),
}
MATRIX = [
    pytest.param(kubernetes, name, id=f"{kubernetes} {name}")
    for kubernetes, (_, names) in OLDER.items()
    for name in names
]


class Kubectl:
    """kubectl against the server of these tests."""

    def __init__(self, cache: Path) -> None:
        module = versions.kubernetes(versions.parse(version.chosen()))
        self._program = str(builds.build(module) / "kubectl")
        self._environment = {
            **os.environ,
            "KUBECONFIG": os.environ[REAL],
            # What it remembers of APIs is of the server that had this address before.
            "KUBECACHEDIR": str(cache),
        }

    def __call__(self, *arguments: str, objects: list[Object] | None = None) -> str:
        done = subprocess.run(
            [self._program, *arguments],
            input=None if objects is None else yaml.safe_dump_all(objects),
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def would_take(self, objects: list[Object]) -> list[str]:
        """What the server would store, as `kind/name`; nothing is stored."""
        # Other tests may have installed the same policies; nobody's fields are taken away.
        options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
        return self("apply", *options, "-o", "name", "-f", "-", objects=objects).split()


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """With the namespace of the release and its accounts, which pods need even in a dry run."""
    run = Kubectl(tmp_path_factory.mktemp("kubectl"))
    home: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    run("apply", "-f", "-", objects=[home])
    yield run
    run("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.mark.parametrize(("kubernetes", "name"), MATRIX)
def test_the_chart_is_taken_without_a_doubt(
    kubectl: Kubectl, render: Render, kubernetes: str, name: str
) -> None:
    server = json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    if versions.parse(server) < versions.parse(kubernetes):
        pytest.skip(f"the server is {server}")
    needs, _ = OLDER[kubernetes]
    objects = [
        one
        for one in render(*VALUES[name], *needs, kubernetes=kubernetes, namespace=NAMESPACE)
        if not one["apiVersion"].startswith(_FOREIGN)
    ]
    kubectl(
        *("apply", "-f", "-"),
        objects=[one for one in objects if one["kind"] == "ServiceAccount"],
    )
    assert len(kubectl.would_take(objects)) == len(objects)


def test_a_misspelt_field_would_be_found(kubectl: Kubectl, render: Render) -> None:
    (wrong,) = (one for one in render(namespace=NAMESPACE) if one["kind"] == "DaemonSet")
    wrong["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(AssertionError, match="hostPid"):
        kubectl.would_take([wrong])


def test_values_of_one_version_name_only_what_that_version_serves(render: Render) -> None:
    """Kinds that came later, by the version that first served them as v1."""
    later = {"MutatingAdmissionPolicy": "1.36.0", "DeviceTaintRule": "1.37.0"}
    for kubernetes, (needs, names) in OLDER.items():
        for name in names:
            kinds = {one["kind"] for one in render(*VALUES[name], *needs, kubernetes=kubernetes)}
            for kind, since in later.items():
                if versions.parse(kubernetes) < versions.parse(since):
                    assert kind not in kinds, (kubernetes, name)
