"""What a controller knows of the gate that holds pods of gangs."""

import pytest
from structlog.testing import capture_logs

from dragoon.app.gate import Gate
from dragoon.gang.admission_memory import POLICIES
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import NAMESPACES, Resource
from dragoon.kube.writing import Admission


@pytest.fixture
def policies() -> dict[Resource, Admission]:
    """What the server does; a test adds to it."""
    return {}


@pytest.fixture
async def api(policies: dict[Resource, Admission]) -> MemoryApi:
    made = MemoryApi(admission=policies)
    await made.create(NAMESPACES, {"metadata": {"name": "home"}})
    return made


async def test_before_the_first_proof_nothing_is_proved(api: MemoryApi) -> None:
    gate = Gate(api, "home", "gpu.dragoon.dev")
    assert "not been proved" in gate.problem
    assert gate.proof is None


async def test_a_gate_that_is_missing_is_asked_for_more_often_and_told_once(
    api: MemoryApi, policies: dict[Resource, Admission]
) -> None:
    gate = Gate(api, "home", "gpu.dragoon.dev")
    with capture_logs() as logs:
        soon = [await gate.prove(), await gate.prove()]
        assert "without the scheduling gate" in gate.problem
        policies.update(POLICIES)
        late = [await gate.prove(), await gate.prove()]
    assert gate.problem == ""
    assert gate.proof is not None
    assert gate.proof.finalizer
    assert max(soon) < min(late)
    assert [log["event"] for log in logs] == ["the gate is not proved", "the gate holds"]


async def test_what_was_proved_is_not_any_more_while_the_server_is_away(
    api: MemoryApi, policies: dict[Resource, Admission]
) -> None:
    policies.update(POLICIES)
    gate = Gate(api, "home", "gpu.dragoon.dev")
    await gate.prove()
    api.faults.fail()
    await gate.prove()
    assert "away" in gate.problem
    assert gate.proof is not None, "the last proof stays"
