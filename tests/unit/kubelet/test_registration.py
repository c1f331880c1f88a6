"""The Registration service without sockets."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoon.kubelet.registration import Registration, RegistrationState
from dragoon.kubelet.wire import plugin_registration_v1_pb2 as wire


@dataclass
class _CallDetails:
    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


async def invoke(registration: Registration, method: str, request: Any) -> Any:
    (handlers,) = registration.handlers()
    handler: Any = handlers.service(_CallDetails(f"/pluginregistration.Registration/{method}"))
    return await handler.unary_unary(request, None)


async def notify(registration: Registration, error: str = "") -> None:
    status = wire.RegistrationStatus(plugin_registered=not error, error=error)
    await invoke(registration, "NotifyRegistrationStatus", status)


@pytest.fixture
def registration() -> Registration:
    return Registration(
        "gpu.dragoon.dev", Path("/var/lib/kubelet/x.sock"), ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    )


async def test_get_info_says_type_name_endpoint_and_versions_newest_first(
    registration: Registration,
) -> None:
    info = await invoke(registration, "GetInfo", wire.InfoRequest())
    assert info.type == "DRAPlugin"
    assert info.name == "gpu.dragoon.dev"
    assert info.endpoint == "/var/lib/kubelet/x.sock"
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


async def test_point_11_registered_means_notified_not_asked(registration: Registration) -> None:
    assert not registration.state.registered
    await invoke(registration, "GetInfo", wire.InfoRequest())
    assert not registration.state.registered
    await notify(registration)
    assert registration.state == RegistrationState(registered=True, reason="", notified=1)


async def test_a_refusal_is_kept_with_its_reason(registration: Registration) -> None:
    await notify(registration)
    await notify(registration, "no handler")
    assert not registration.state.registered
    assert registration.state.reason == "refused by the kubelet: no handler"


async def test_a_lost_socket_ends_the_registration_until_the_next_notification(
    registration: Registration,
) -> None:
    await notify(registration)
    registration.lost("gone")
    assert registration.state == RegistrationState(registered=False, reason="gone", notified=1)
    await notify(registration)
    assert registration.state == RegistrationState(registered=True, reason="", notified=2)


async def test_losing_what_was_never_registered_keeps_the_reason(
    registration: Registration,
) -> None:
    before = registration.state
    registration.lost("gone")
    assert registration.state is before


async def test_every_waiter_wakes_at_the_notification(registration: Registration) -> None:
    waiters = [asyncio.create_task(registration.wait_registered()) for _ in range(3)]
    await asyncio.sleep(0)
    await notify(registration, "not yet")
    await asyncio.sleep(0)
    assert not any(waiter.done() for waiter in waiters)
    await notify(registration)
    async with asyncio.timeout(60):
        await asyncio.gather(*waiters)


async def test_point_04_changes_tell_of_a_kubelet_that_registers_us_again(
    registration: Registration,
) -> None:
    seen: list[int] = []
    reached = asyncio.Event()

    async def follow() -> None:
        async for state in registration.changes():
            seen.append(state.notified)
            if state.notified == 2:
                reached.set()

    follower = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await notify(registration)
    await asyncio.sleep(0)
    await notify(registration)
    async with asyncio.timeout(60):
        await reached.wait()
    follower.cancel()
    assert seen[0] == 0
    assert seen[-1] == 2
