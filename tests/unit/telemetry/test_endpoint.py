import asyncio
import re
from typing import Any

import aiohttp
import pytest

from dragoon.errors import ConfigError, KubeletError
from dragoon.telemetry.endpoint import Endpoint
from dragoon.telemetry.metrics import Metrics


async def fetch(server: Endpoint, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}{path}") as answer,
    ):
        return answer.status, await answer.text()


def an_endpoint(**parts: Any) -> Endpoint:
    return Endpoint(
        "127.0.0.1",
        0,
        metrics=parts.pop("metrics", Metrics("1")),
        not_ready=parts.pop("not_ready", list),
        **parts,
    )


async def test_metrics_are_served_as_prometheus_text() -> None:
    metrics = Metrics("1")
    metrics.registered(True)
    async with an_endpoint(metrics=metrics) as server:
        status, text = await fetch(server, "/metrics")
    assert status == 200
    assert re.search(r"^dragoon_registered 1.0$", text, re.MULTILINE)


async def test_readiness_names_what_is_missing_and_follows_the_state() -> None:
    missing = ["not registered with the kubelet", "no slice published"]
    async with an_endpoint(not_ready=lambda: missing) as server:
        assert await fetch(server, "/readyz") == (
            503,
            "not registered with the kubelet\nno slice published\n",
        )
        missing.clear()
        assert await fetch(server, "/readyz") == (200, "ok\n")


async def test_liveness_is_what_the_call_of_ourselves_says() -> None:
    problems: list[KubeletError] = []

    async def call() -> None:
        for problem in problems:
            raise problem

    async with an_endpoint(self_call=call) as server:
        assert await fetch(server, "/healthz") == (200, "ok\n")
        problems.append(KubeletError("our socket is gone"))
        assert await fetch(server, "/healthz") == (503, "our socket is gone\n")


async def test_a_call_of_ourselves_that_never_ends_is_not_alive() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async with an_endpoint(self_call=hang, self_call_seconds=0.05) as server:
        status, text = await fetch(server, "/healthz")
    assert status == 503
    assert "no answer from ourselves" in text


async def test_the_state_is_readable_json() -> None:
    async with an_endpoint(state=lambda: {"registered": True, "gpus": 8}) as server:
        status, text = await fetch(server, "/debug/state")
    assert status == 200
    assert text == '{\n  "registered": true,\n  "gpus": 8\n}'


async def test_an_address_in_use_is_a_clear_config_error() -> None:
    async with an_endpoint() as server:
        taken = Endpoint("127.0.0.1", server.port, metrics=Metrics("1"), not_ready=list)
        with pytest.raises(ConfigError, match=r"listen: cannot listen on 127\.0\.0\.1"):
            await taken.__aenter__()


async def test_the_port_is_unknown_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        _ = an_endpoint().port
