"""What befalls a whole node, with containers of every kind on it: reboots, restarts, load."""

import asyncio
from collections.abc import Awaitable, Callable

from chaoscampaign.board import Deed, Kind
from chaoscampaign.campaign import Call, Campaign
from chaoscampaign.workload import Pod
from dragoon.errors import ApiConflictError, ApiError, ApiGoneError, ApiUnavailableError
from dragoon.kube.port import SLICES

API_ERRORS: dict[str, Callable[[], ApiError]] = {
    "409": lambda: ApiConflictError("conflict", status=409),
    "410": lambda: ApiGoneError("too old", status=410),
    "429": lambda: ApiUnavailableError("too many", status=429),
    "500": lambda: ApiError("internal error", status=500),
    "503": lambda: ApiUnavailableError("away", status=503),
}


async def crowded(campaign: Campaign, deed: Callable[[Campaign], Awaitable[None]]) -> None:
    """The same with a pod of every kind on the node."""
    pods = await campaign.host(campaign.node.wishes.values())
    await deed(campaign)
    for pod in pods:
        await campaign.leave(pod)
    await campaign.quiet()


async def reboot(campaign: Campaign) -> None:
    """The machine is restarted in good order while pods have claims here."""
    campaign.begin("reboot with allocated claims")
    campaign.tally.faults += 1
    await campaign.node.kill()
    campaign.node.reboot()
    await after_boot(campaign, [life.pod for life in campaign.lives.values()])


async def watches_break(campaign: Campaign) -> None:
    """Every watch is cut, its place in history forgotten, and somebody deletes our slices."""
    campaign.begin("watches cut, history compacted, slices deleted")
    campaign.tally.faults += 1
    campaign.node.memory.faults.cut_watches()
    for one in await campaign.node.slices():
        await campaign.node.memory.delete(SLICES, one["metadata"]["name"])
    campaign.node.memory.compact()
    await campaign.node.settled()
    await campaign.quiet()


async def slices_refused(campaign: Campaign) -> None:
    """Somebody deletes our slices, and the first writes of new ones fail."""
    name = campaign.rng.choice([*API_ERRORS])
    campaign.begin(f"slices deleted, API server: {name} at the writes")
    campaign.tally.faults += 1
    faults = campaign.node.memory.faults
    for one in await campaign.node.slices():
        await campaign.node.memory.delete(SLICES, one["metadata"]["name"])
    faults.fail(error=API_ERRORS[name], verb="create", resource=SLICES, times=2)
    await campaign.node.settled()
    faults.clear()
    await campaign.quiet()


async def kubelet_restarts(campaign: Campaign) -> None:
    """A kubelet that starts deletes the node's slices and prepares no running pod again."""
    campaign.begin("kubelet restarted")
    campaign.tally.faults += 1
    await campaign.node.kubelet.close()
    for one in await campaign.node.slices():
        await campaign.node.memory.delete(SLICES, one["metadata"]["name"])
    await campaign.node.kubelet.meet()
    await campaign.node.settled()
    await campaign.quiet()


async def cdi_folder_emptied(campaign: Campaign) -> None:
    """Somebody empties the folder under running containers; nobody but the plugin mends that."""
    campaign.begin("CDI folder emptied")
    campaign.tally.faults += 1
    wanted = {path for life in campaign.lives.values() for path in life.files}
    for path in campaign.node.cdi_root.iterdir():
        path.unlink()
    await campaign.until("the CDI specs are back", lambda: all(path.exists() for path in wanted))
    await campaign.quiet()


async def killed_under_load(campaign: Campaign) -> None:
    """Pods come and go at once; the process is killed at some point of all that."""
    campaign.begin("killed under load")
    wishes = [*campaign.node.wishes.values()]
    pods = [await campaign.arrive(wish) for wish in wishes]
    channel = campaign.node.board[Kind.EFFECTS]
    channel.arm(Deed.KILL, ahead=campaign.rng.randrange(160))
    for call in Call:
        await asyncio.gather(*(campaign.call(call, pod) for pod in pods))
    await campaign.dead()
    await campaign.restart()
    for pod in pods:
        await campaign.leave(pod)
    await campaign.quiet()


async def after_boot(campaign: Campaign, pods: list[Pod]) -> None:
    """The machine is up again: the kubelet starts the pods that are still here."""
    campaign.lives.clear()
    for pod in pods:
        campaign.node.make_cgroup(pod)
    await campaign.restart()
    for pod in pods:
        await campaign.must(Call.PREPARE, pod)
    # The disk may have brought back entries of claims that ended before the power went.
    await campaign.until("entries of claims that are gone are released", campaign.no_strangers)
    await campaign.look()
