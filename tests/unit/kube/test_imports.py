"""What an import of this package costs: the port and the fakes do without `kubernetes`."""

import subprocess
import sys

import pytest

PROBE = """
import sys
import {module}
print("kubernetes" in sys.modules)
print(any(name.startswith("kubernetes.aio.client.models.") for name in sys.modules))
"""


def probe(module: str) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(module=module)],
        check=True,
        capture_output=True,
        text=True,
    )
    return answer.stdout.split()


@pytest.mark.parametrize(
    "module",
    [
        *("port", "memory", "serving", "informer", "events", "backoff", "statuses"),
        *("access", "client", "connecting"),
    ],
)
def test_who_reads_no_kubeconfig_imports_no_kubernetes(module: str) -> None:
    assert probe(f"dragoon.kube.{module}")[0] == "False"


def test_reading_a_kubeconfig_imports_no_typed_model() -> None:
    assert probe("dragoon.kube.kubeconfig") == ["True", "False"]


def test_the_node_process_imports_no_kubernetes() -> None:
    assert probe("dragoon.app.plugin")[0] == "False"
