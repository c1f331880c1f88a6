"""Several controllers, and controllers that die: what one left the next goes on with."""

import asyncio
import gc
from typing import Any

from dragoon.api.device_status import EVICT
from dragoon.app.controller import Controller
from dragoon.errors import ApiUnavailableError
from dragoon.gang.remembering import Memory
from dragoon.kube.faults import Call
from dragoon.kube.port import CLAIMS, GANGS, JOBS, LEASES, PODS, Api, Resource
from testbed.waiting import PATIENCE
from tests.scenario.gang.bed import SOON_LOST, SPACE, Bed
from tests.scenario.gang.refusals import evictions, fails_to_prepare, is_woken, refuse
from tests.scenario.pluginbed import until


class Cut:
    """The API server over a wire that can be cut for good: as for a process that was killed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._api, name)
        if name in {"watch", "pages"}:
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            if self.is_cut:
                raise ApiUnavailableError("cut")
            return await found(*arguments, **options)

        return call


async def test_c37_two_controllers_give_no_device_twice() -> None:
    async with Bed(nodes=1).up() as bed, bed.controller() as one, bed.controller() as two:
        for index in range(6):
            await bed.pod(f"p{index}", gang=f"g{index}", size="1")

        async def settled() -> bool:
            phases = [
                str(found.status.phase)
                for index in range(6)
                if (found := await bed.see(f"g{index}")) is not None
            ]
            return phases.count("Running") == 4 and phases.count("Waiting") == 2

        await until("four run, two wait", settled)
        devices = [device for found in (await bed.allocated()).values() for device in found]
        assert len(devices) == len(set(devices)) == 4
        assert one.state()["leading"] is not two.state()["leading"]


async def test_another_controller_goes_on_where_the_first_was_cut_off() -> None:
    async with Bed().up() as bed:
        wire = Cut(bed.api)
        # The first one gets through half of its allocations, then never hears of them again.
        half = bed.api.faults.hang(times=None, when=_is_allocation)
        first = bed.controller(api=wire, timing=SOON_LOST)
        dying = await first.__aenter__()
        await until("the first leads", lambda: dying.state()["leading"])
        await bed.job("j", 4, template="pair")
        await asyncio.wait_for(half.reached.wait(), PATIENCE)
        wire.is_cut = True
        half.lift()
        async with bed.controller(timing=SOON_LOST) as second:
            await until("the second leads", lambda: second.state()["leading"])
            await bed.phase("j", "Running")
            devices = [device for found in (await bed.allocated()).values() for device in found]
            assert len(devices) == len(set(devices)) == 8
        await first.__aexit__(None, None, None)


def _is_allocation(call: Call) -> bool:
    return call.verb == "patch" and call.resource is CLAIMS and call.subresource == "status"


async def test_a_leader_that_cannot_renew_stops_and_comes_back() -> None:
    async with Bed().up() as bed, bed.controller(timing=SOON_LOST) as controller:
        await until("it leads", lambda: controller.state()["leading"])
        away = bed.api.faults.fail(times=None, resource=LEASES)
        await until("it stops", lambda: not controller.state()["leading"])
        away.lift()
        await until("it leads again", lambda: controller.state()["leading"])
        await bed.job("j", 2)
        await bed.phase("j", "Running")


async def test_errors_of_the_api_are_tried_again_until_the_gang_runs() -> None:
    async with Bed().up() as bed, bed.controller():
        bed.api.faults.fail(times=2, verb="create", resource=GANGS)
        bed.api.faults.fail(times=3, verb="patch", when=_is_allocation)
        bed.api.faults.lose_answer(times=2, verb="patch", resource=GANGS)
        bed.api.faults.lose_answer(times=1, when=_is_allocation)
        await bed.job("j", 2)
        await bed.phase("j", "Running")
        devices = [device for found in (await bed.allocated()).values() for device in found]
        assert len(devices) == len(set(devices)) == 2


async def test_a_standby_keeps_no_list_of_what_to_do_and_does_it_once_it_leads() -> None:
    async with Bed(nodes=1).up() as bed:
        async with bed.controller():
            for name in ("refused", "slept"):
                await bed.job(name, 1)
                await bed.phase(name, "Running")
        nobody_leads = bed.api.faults.hang(times=None, resource=LEASES)
        async with bed.controller() as standby:
            await refuse(bed, "refused-0", EVICT)
            await fails_to_prepare(bed, "slept-0", 1)
            for index in range(3):
                await bed.pod(f"gone-{index}", gang=f"gone-{index}", size="1")
            await bed.job("late", 1)
            await until("it sees them", lambda: objects(standby, PODS) == 6)
            for index in range(3):
                await bed.api.delete(PODS, f"gone-{index}", namespace=SPACE)
            await until("it sees them go", lambda: objects(standby, PODS) == 3)
            assert standby.state()["waiting"] == 0
            nobody_leads.lift()
            await bed.phase("late", "Running")
            await until("a pod is evicted", lambda: evictions(bed) == ["refused-0"])
            await until("a kubelet is woken", lambda: is_woken(bed, "slept-0"))


def objects(controller: Controller, resource: Resource) -> int:
    """How many objects of a kind a controller has copies of."""
    found: int = controller.state()["copies"][resource.plural]["objects"]
    return found


async def test_a_gang_that_goes_while_it_is_written_leaves_nothing_behind() -> None:
    before = memories()
    async with Bed().up() as bed, bed.controller() as controller:
        writing = bed.api.faults.hang(when=_is_allocation)
        await bed.job("j", 1)
        await asyncio.wait_for(writing.reached.wait(), PATIENCE)
        for resource, name in ((PODS, "j-0"), (JOBS, "j"), (GANGS, "j")):
            await bed.api.delete(resource, name, namespace=SPACE)
        await until("the gang is gone", lambda: objects(controller, GANGS) == 0)
        await until("the claim is gone", lambda: objects(controller, CLAIMS) == 0)
        writing.lift()
        await until("nothing is remembered", lambda: memories() <= before)


def memories() -> int:
    """Of how many gangs anything is remembered in this process."""
    gc.collect()
    return sum(isinstance(one, Memory) for one in gc.get_objects())
