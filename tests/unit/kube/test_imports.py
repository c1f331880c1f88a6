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
    "module", ["port", "memory", "serving", "informer", "events", "backoff", "statuses"]
)
def test_only_the_client_imports_kubernetes(module: str) -> None:
    assert probe(f"dragoon.kube.{module}")[0] == "False"


@pytest.mark.parametrize("module", ["client", "connecting"])
def test_the_client_imports_no_typed_model(module: str) -> None:
    assert probe(f"dragoon.kube.{module}") == ["True", "False"]
