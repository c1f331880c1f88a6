"""What is kept for a gang outlives the controller that chose it, wherever that one dies."""

from typing import Any

import pytest

from dragoon.errors import ApiUnavailableError
from dragoon.kube.port import GANGS, TAINT_RULES, Api
from tests.scenario.gang.bed import SOON_LOST, Bed, condition
from tests.scenario.gang.keeping import AT_ONCE, fenced, nothing_kept, reserved, singles
from tests.scenario.pluginbed import until

_WRITES = frozenset(("create", "patch", "delete"))


class Dying:
    """The API server for a process that dies at one of its writes to Gangs and rules.

    alive: writes that are done. heard: whether the process gets the answer to the last of them.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.alive = 10**6
        self.heard = True

    @property
    def is_dead(self) -> bool:
        return self.alive <= 0

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._api, verb)
        if verb in {"watch", "pages"}:
            return found

        async def call(resource: Any, *arguments: Any, **options: Any) -> Any:
            if self.is_dead:
                raise ApiUnavailableError("dead")
            answer = await found(resource, *arguments, **options)
            if verb in _WRITES and resource in {GANGS, TAINT_RULES}:
                self.alive -= 1
                if self.is_dead and not self.heard:
                    raise ApiUnavailableError("dead")
            return answer

        return call if verb not in {"groups", "version", "plurals"} else found


@pytest.mark.parametrize("heard", [True, False], ids=["answered", "answer lost"])
@pytest.mark.parametrize("writes", [1, 2, 3, 4])
async def test_the_next_leader_goes_on_with_what_is_kept(writes: int, *, heard: bool) -> None:
    async with Bed(nodes=1).up() as bed:
        wire = Dying(bed.api)
        async with bed.controller(api=wire, timing=SOON_LOST, **AT_ONCE):
            await singles(bed, "a", "b", "c", "d")
            for name in "abcd":
                await bed.phase(name, "Running")
            wire.alive, wire.heard = writes, heard
            await bed.job("large", 2, template="pair")
            await until("the first is dead", lambda: wire.is_dead)
            async with bed.controller(timing=SOON_LOST, **AT_ONCE) as second:
                await until("the second leads", lambda: second.state()["leading"])
                kept = await reserved(bed, "large")
                assert condition(kept, "Reserved")[0] == "True"
                await singles(bed, "e")
                await bed.phase("e", "Waiting")
                for name in "abcd":
                    await bed.end(f"{name}-0")
                await bed.phase("large", "Running")
                await until("nothing is kept any more", lambda: nothing_kept(bed, "large"))
                assert await fenced(bed, "large") == {"n0/gpu"}
                waiting = await bed.see("e")
                assert waiting is not None
                assert waiting.status.phase == "Waiting"
