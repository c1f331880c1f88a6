"""The DRA service without sockets: messages in, messages out."""

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from dragoon.api.claims import ClaimRef
from dragoon.errors import ClaimGoneError, DeviceBusyError
from dragoon.kubelet.draplugin import DraPlugin
from dragoon.kubelet.messages import DRA_VERSIONS, DraVersion, read_device, write_claims
from dragoon.prepare.port import PreparedDevice
from tests.unit.kubelet.preparers import ScriptedPreparer, claim, device

V1, V1BETA1 = DRA_VERSIONS


@dataclass
class _CallDetails:
    """What gRPC gives to a generic handler to choose a method."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


async def invoke(plugin: DraPlugin, version: DraVersion, method: str, *claims: Any) -> Any:
    details = _CallDetails(f"/{version.service.full_name}/{method}")
    chosen: list[Any] = [
        found for h in plugin.handlers() if (found := h.service(details)) is not None
    ]
    assert len(chosen) == 1
    request = getattr(version.wire, f"{method}Request")(claims=write_claims(version, claims))
    raw = request.SerializeToString()
    response = await chosen[0].unary_unary(chosen[0].request_deserializer(raw), None)
    answer = getattr(version.wire, f"{method}Response")
    return answer.FromString(chosen[0].response_serializer(response))


@pytest.fixture
def preparer() -> ScriptedPreparer:
    return ScriptedPreparer()


@pytest.fixture
def plugin(preparer: ScriptedPreparer) -> DraPlugin:
    return DraPlugin(preparer)


@pytest.mark.parametrize("version", DRA_VERSIONS, ids=lambda v: v.advertised)
async def test_each_version_answers_with_the_devices_of_each_claim(
    plugin: DraPlugin, preparer: ScriptedPreparer, version: DraVersion
) -> None:
    preparer.answers["a"] = (device("gpu-0"), device("gpu-1"))
    preparer.answers["b"] = ()
    response = await invoke(plugin, version, "NodePrepareResources", claim("a"), claim("b"))
    assert set(response.claims) == {"a", "b"}
    assert [read_device(d) for d in response.claims["a"].devices] == [
        device("gpu-0"),
        device("gpu-1"),
    ]
    assert not response.claims["a"].error
    assert not response.claims["b"].devices
    assert not response.claims["b"].error


async def test_a_failing_claim_costs_only_itself_and_says_code_message_and_hint(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.answers["b"] = DeviceBusyError("gpu-0 is held by default/x", hint="wait for it")
    response = await invoke(plugin, V1, "NodePrepareResources", claim("a"), claim("b"), claim("c"))
    assert response.claims["b"].error == "DeviceBusy: gpu-0 is held by default/x (wait for it)"
    assert not response.claims["b"].devices
    assert [len(response.claims[uid].devices) for uid in ("a", "c")] == [1, 1]


async def test_a_defect_costs_only_its_claim_and_is_logged_with_its_traceback(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.answers["b"] = ZeroDivisionError("by zero")
    with capture_logs() as logs:
        response = await invoke(plugin, V1, "NodePrepareResources", claim("a"), claim("b"))
    assert response.claims["b"].error.startswith("Internal: unexpected ZeroDivisionError: by zero")
    assert len(response.claims["a"].devices) == 1
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert entry["exc_info"]
    assert entry["claims"] == [str(claim("b"))]


async def test_share_ids_are_sent_in_v1_and_left_out_in_v1beta1(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    shared = device("gpu-0-shared", share_id="5f2d")
    preparer.answers["a"] = (shared, device("gpu-1"))
    new = await invoke(plugin, V1, "NodePrepareResources", claim("a"))
    old = await invoke(plugin, V1BETA1, "NodePrepareResources", claim("a"))
    assert [read_device(d).share_id for d in new.claims["a"].devices] == ["5f2d", None]
    assert [read_device(d).share_id for d in old.claims["a"].devices] == [None, None]
    assert old.claims["a"].devices[0].device_name == "gpu-0-shared"


async def test_request_names_go_to_the_kubelet_as_the_preparer_gave_them(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.answers["a"] = (PreparedDevice(("g", "h"), "pool", "gpu-0", ("v/c=1", "v/c=2")),)
    response = await invoke(plugin, V1, "NodePrepareResources", claim("a"))
    (sent,) = response.claims["a"].devices
    assert list(sent.request_names) == ["g", "h"]
    assert list(sent.cdi_device_ids) == ["v/c=1", "v/c=2"]


async def test_claims_of_one_call_run_side_by_side(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.gates = {"a": preparer.begun["b"], "b": preparer.begun["a"]}  # each waits for both
    async with asyncio.timeout(60):
        response = await invoke(plugin, V1, "NodePrepareResources", claim("a"), claim("b"))
    assert set(response.claims) == {"a", "b"}


async def test_a_claim_named_twice_in_a_call_is_prepared_once(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    response = await invoke(plugin, V1, "NodePrepareResources", claim("a"), claim("a"))
    assert len(response.claims["a"].devices) == 1
    assert preparer.calls == [("prepare", "a")]


async def test_two_claims_with_one_uid_are_refused_untouched(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    response = await invoke(
        plugin, V1, "NodePrepareResources", claim("a", "one"), claim("a", "two"), claim("b")
    )
    assert response.claims["a"].error.startswith("InvalidInput: claims: found default/one (a)")
    assert preparer.calls == [("prepare", "b")]


@pytest.mark.parametrize("uid", ["../../etc/passwd", "", "a/b", "a" * 64, "a\nb", ".hidden"])
@pytest.mark.parametrize("method", ["NodePrepareResources", "NodeUnprepareResources"])
async def test_a_uid_that_is_no_file_name_never_reaches_the_preparer(
    plugin: DraPlugin, preparer: ScriptedPreparer, uid: str, method: str
) -> None:
    response = await invoke(plugin, V1, method, claim(uid), claim("good"))
    assert response.claims[uid].error.startswith(f"InvalidInput: claims.uid: found {uid!r}")
    assert [called for _, called in preparer.calls] == ["good"]


async def test_a_claim_without_a_name_is_refused(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    response = await invoke(plugin, V1, "NodePrepareResources", ClaimRef("default", "", "a"))
    assert "a name and a namespace are required" in response.claims["a"].error
    assert not preparer.calls


async def test_unprepare_answers_for_each_claim_and_unknown_ones_succeed(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.failing_unprepare["b"] = ClaimGoneError("still in use", hint="")
    response = await invoke(plugin, V1, "NodeUnprepareResources", claim("unknown"), claim("b"))
    assert {uid: entry.error for uid, entry in response.claims.items()} == {
        "unknown": "",
        "b": "ClaimGone: still in use",
    }


async def test_a_call_without_claims_has_an_answer_without_entries(plugin: DraPlugin) -> None:
    response = await invoke(plugin, V1, "NodePrepareResources")
    assert not response.claims


async def test_point_07_a_cancelled_call_ends_and_leaves_the_service_idle(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.gates["a"] = asyncio.Event()
    call = asyncio.create_task(invoke(plugin, V1, "NodePrepareResources", claim("a")))
    await preparer.begun["a"].wait()
    idle = asyncio.create_task(plugin.wait_idle())
    await asyncio.sleep(0)
    assert not idle.done()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(60):
        await idle
    assert preparer.cut_off == ["a"]


async def test_point_07_an_attempt_that_is_cut_off_from_within_is_an_error_of_its_claim(
    plugin: DraPlugin, preparer: ScriptedPreparer
) -> None:
    preparer.answers["a"] = asyncio.CancelledError()
    response = await invoke(plugin, V1, "NodePrepareResources", claim("a"), claim("b"))
    assert "was cut off" in response.claims["a"].error
    assert len(response.claims["b"].devices) == 1


class Noting:
    """A preparer that notes what its log lines would carry, in a thread of its own."""

    def __init__(self) -> None:
        self.carried: list[dict[str, Any]] = []

    async def prepare(self, claim: ClaimRef) -> tuple[PreparedDevice, ...]:
        del claim
        await asyncio.to_thread(self._note)
        raise ClaimGoneError("deleted")

    async def unprepare(self, claim: ClaimRef) -> None:
        await self.prepare(claim)

    def _note(self) -> None:
        self.carried.append(structlog.contextvars.get_contextvars())


async def test_every_line_of_a_claim_carries_its_uid_and_an_operation_of_its_own() -> None:
    noting, told = Noting(), list[dict[str, Any]]()

    def keep(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        told.append({**structlog.contextvars.get_contextvars(), **event})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    try:
        await invoke(DraPlugin(noting), V1, "NodePrepareResources", claim("a"), claim("b"))
    finally:
        structlog.reset_defaults()
    assert sorted(line["claim_uid"] for line in noting.carried) == ["a", "b"]
    operations = {line["claim_uid"]: line["operation"] for line in noting.carried}
    assert operations["a"] != operations["b"]
    assert {line["claim_uid"]: line["operation"] for line in told} == operations
    assert {line["event"] for line in told} == {"claim failed"}
    assert not structlog.contextvars.get_contextvars()
