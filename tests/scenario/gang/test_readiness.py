"""What a controller says about itself over HTTP."""

import re

import aiohttp

from dragoon.app.controller import Controller
from dragoon.errors import ApiNotFoundError
from dragoon.gang.admission_memory import POLICIES
from dragoon.kube.port import TAINT_RULES, Resource
from dragoon.kube.writing import Admission
from tests.scenario.gang.bed import Bed
from tests.scenario.pluginbed import until


async def ask(controller: Controller, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{controller.endpoint.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_collection_that_cannot_be_listed_is_named_with_the_reason() -> None:
    async with Bed().up() as bed:
        missing = bed.api.faults.fail(
            times=None,
            resource=TAINT_RULES,
            error=lambda: ApiNotFoundError("the server could not find it", status=404),
        )
        async with bed.controller() as controller:
            wanted = "devicetaintrules (the server could not find it) are not listed yet"
            await until("it is told", lambda: wanted in controller.not_ready())
            status, text = await ask(controller, "/readyz")
            assert status == 503
            assert wanted in text
            missing.lift()
            await until("it is ready", lambda: not controller.not_ready())
            assert (await ask(controller, "/readyz"))[0] == 200


async def test_a_gate_that_is_missing_is_told_until_it_is_there() -> None:
    policies = dict[Resource, Admission]()
    async with Bed(policies=policies).up() as bed, bed.controller() as controller:
        await until("it is told", lambda: any("gate" in one for one in controller.not_ready()))
        policies.update(POLICIES)
        await until("it is ready", lambda: not controller.not_ready())
        assert controller.state()["gate"] == "proved"
        assert controller.state()["finalizerByPolicy"] is True


async def test_gangs_are_counted_by_phase_and_plans_by_answer() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller() as controller:
        await bed.job("j", 2)
        await bed.job("huge", 9)
        await bed.phase("j", "Running")
        await bed.waits("huge")
        running = {"Running": 1, "Waiting": 1}
        await until(
            "the copies show it",
            lambda: {k: v for k, v in controller.state()["gangs"].items() if v} == running,
        )
        _, text = await ask(controller, "/metrics")
        # One that waits is planned again when anything becomes free: how often is not said.
        answers = dict(re.findall(r'dragoon_gang_plans_total\{result="(\w+)"\} (\S+)', text))
        assert float(answers["planned"]) == 1
        assert float(answers["Never"]) >= 1
        assert "dragoon_leading 1.0" in text
        assert (await ask(controller, "/healthz"))[0] == 200
