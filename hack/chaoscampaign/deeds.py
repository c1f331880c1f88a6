"""What befalls one call of the kubelet.

Each deed leaves the node mended, with the same containers.
"""

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

from chaoscampaign import truth
from chaoscampaign.board import Deed, Kind
from chaoscampaign.campaign import Call, Campaign
from chaoscampaign.outages import API_ERRORS, after_boot
from chaoscampaign.rollback import roll_back
from chaoscampaign.workload import Pod, Wish
from dragoon.kube.port import CLAIMS

_ERRNOS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
# What cards answer when they are not well: unknown, time-out, in use, no memory, bad state.
_DRIVER_CODES = (999, 10, 19, 20, 18)
_BRIEF_S = 0.3
_START = 12
"""About as many effects as a start has, and what it finds to put right."""
_DOOM_S = 5.0


async def measure(campaign: Campaign, wish: Wish) -> dict[tuple[Call, Kind], int]:
    """How many points of each kind the two calls of a claim have."""
    pod = await campaign.arrive(wish)
    found = {}
    for call in Call:
        before = {kind: campaign.node.board[kind].passed for kind in Kind}
        await campaign.must(call, pod)
        for kind in Kind:
            found[call, kind] = campaign.node.board[kind].passed - before[kind]
    await campaign.forget(pod)
    return found


async def kill_at(campaign: Campaign, wish: Wish, call: Call, point: int, deed: Deed) -> None:
    """SIGKILL before one point, or in the middle of it; the kubelet asks again, or gives up."""
    gives_up = call is Call.PREPARE and campaign.rng.random() < 1 / 3
    then = "then unprepare" if gives_up else "then again"
    campaign.begin(f"{deed.name} at point {point} of {call} {wish.kind}, {then}")
    pod = await _ready_for(campaign, wish, call)
    campaign.node.board[Kind.EFFECTS].arm(deed, ahead=point)
    await campaign.call(call, pod)
    await campaign.dead()
    await campaign.restart()
    await _finish(campaign, pod, call, gives_up=gives_up)


async def killed_again_at(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """SIGKILL before one point, and the next process dies while it puts that right."""
    start = campaign.rng.randrange(_START)
    campaign.begin(f"KILL at point {point} of {call} {wish.kind}, and at {start} of the next start")
    pod = await _ready_for(campaign, wish, call)
    campaign.node.board[Kind.EFFECTS].arm(Deed.KILL, ahead=point)
    await campaign.call(call, pod)
    await campaign.dead()
    campaign.node.launch(doomed_at=start)
    with suppress(TimeoutError):
        async with asyncio.timeout(_DOOM_S):
            await campaign.node.death()
    await campaign.dead()
    await campaign.restart()
    await _finish(campaign, pod, call, gives_up=False)


async def power_cut_at(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """The power goes before one point: only what was synced is there, and perhaps some more."""
    campaign.begin(f"power cut at point {point} of {call} {wish.kind}")
    pod = await _ready_for(campaign, wish, call)
    campaign.node.board[Kind.EFFECTS].arm(Deed.KILL, ahead=point)
    await campaign.call(call, pod)
    await campaign.node.kill()
    campaign.tally.faults += 1
    survivors = [life.pod for life in campaign.lives.values()]
    luck = campaign.rng if campaign.rng.random() < 1 / 2 else None
    roll_back(campaign.node, luck)
    campaign.blame(truth.forgotten(campaign.node, survivors))
    campaign.node.reboot()
    campaign.node.make_cgroup(pod)
    await after_boot(campaign, survivors)
    await _finish(campaign, pod, call, gives_up=False)


async def fail_effect(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """One effect fails: a full disk, a failed fsync, a folder that is read-only for a moment."""
    code = campaign.rng.choice(_ERRNOS)
    campaign.begin(f"{errno.errorcode[code]} at point {point} of {call} {wish.kind}")
    await _broken(campaign, wish, call, Kind.EFFECTS, (Deed.FAIL, point, code))


async def disk_stays_broken(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """From one effect on, none works; then the disk is mended."""
    code = campaign.rng.choice(_ERRNOS)
    campaign.begin(f"{errno.errorcode[code]} from point {point} of {call} {wish.kind} on")
    await _broken(campaign, wish, call, Kind.EFFECTS, (Deed.FAIL_ON, point, code))


async def fail_driver(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """One call of the driver library fails."""
    code = campaign.rng.choice(_DRIVER_CODES)
    campaign.begin(f"NVML code {code} at driver call {point} of {call} {wish.kind}")
    await _broken(campaign, wish, call, Kind.DRIVER_CALLS, (Deed.FAIL, point, code))


async def hang_driver(campaign: Campaign, wish: Wish, call: Call, point: int) -> None:
    """One call of the driver library hangs; it comes back, or the plugin is killed meanwhile."""
    killed = campaign.rng.random() < 1 / 2
    end = "killed while it hangs" if killed else "comes back"
    campaign.begin(f"driver call {point} of {call} {wish.kind} hangs, {end}")
    pod = await _ready_for(campaign, wish, call)
    channel = campaign.node.board[Kind.DRIVER_CALLS]
    channel.arm(Deed.HANG, ahead=point)
    asked = asyncio.create_task(campaign.call(call, pod))
    while not (channel.reached or asked.done()):  # noqa: ASYNC110 - shared memory tells nobody
        await asyncio.sleep(0.002)
    if killed:
        await campaign.dead()
        await asked
        await campaign.restart()
    else:
        campaign.tally.faults += 1
        channel.disarm()
        await asked
    await _finish(campaign, pod, call, gives_up=False)


async def api_fails(campaign: Campaign, wish: Wish, call: Call) -> None:
    """The API server answers the plugin's next reads with an error, or late, or not at all."""
    name = campaign.rng.choice([*API_ERRORS, "slow"])
    campaign.begin(f"API server: {name} at {call} {wish.kind}")
    pod = await _ready_for(campaign, wish, call)
    faults = campaign.node.memory.faults
    if name == "slow":
        fault = faults.hang(verb="get", resource=CLAIMS)
    else:
        fault = faults.fail(error=API_ERRORS[name], verb="get", resource=CLAIMS, times=2)
    campaign.tally.faults += 1
    asked = asyncio.create_task(campaign.call(call, pod))
    with suppress(TimeoutError):
        async with asyncio.timeout(_BRIEF_S):
            await fault.reached.wait()
    fault.lift()
    await asked
    await _finish(campaign, pod, call, gives_up=False)


async def api_away(campaign: Campaign, wish: Wish, call: Call) -> None:
    """The API server is gone while a call comes; then it is back."""
    campaign.begin(f"API server gone at {call} {wish.kind}")
    pod = await _ready_for(campaign, wish, call)
    await campaign.node.api.stop()
    campaign.tally.faults += 1
    await campaign.call(call, pod, timeout=_BRIEF_S)
    await campaign.node.api.start()
    await _finish(campaign, pod, call, gives_up=False)


async def journal_damaged(campaign: Campaign, wish: Wish) -> None:
    """A journal file is torn under a running container, while the plugin runs or is down."""
    how, data = campaign.rng.choice(
        [("emptied", b""), ("cut", b'{"checksum": "sha256:00", "en'), ("garbled", b"\xff\x00")]
    )
    is_down = campaign.rng.random() < 1 / 2
    campaign.begin(
        f"journal of {wish.kind} {how} while the plugin is {'down' if is_down else 'up'}"
    )
    pod = await campaign.arrive(wish)
    await campaign.must(Call.PREPARE, pod)
    campaign.tally.faults += 1
    if is_down:
        await campaign.node.kill()
    file = campaign.node.paths.journal(pod.claim.uid)
    file.write_bytes(data)
    if is_down:
        await campaign.restart()
    await campaign.until("the journal is whole again", lambda: _is_whole(file))
    await campaign.quiet()
    await campaign.leave(pod)
    await campaign.quiet()


async def _ready_for(campaign: Campaign, wish: Wish, call: Call) -> Pod:
    pod = await campaign.arrive(wish)
    if call is Call.UNPREPARE:
        await campaign.must(Call.PREPARE, pod)
    return pod


async def _broken(
    campaign: Campaign, wish: Wish, call: Call, kind: Kind, order: tuple[Deed, int, int]
) -> None:
    """The call meets the fault, is cut short by the kubelet if it waits, and works afterwards."""
    pod = await _ready_for(campaign, wish, call)
    deed, point, code = order
    campaign.node.board[kind].arm(deed, ahead=point, code=code)
    campaign.tally.faults += 1
    await campaign.call(call, pod, timeout=_BRIEF_S if deed is Deed.FAIL_ON else 45.0)
    campaign.node.board[kind].disarm()
    await campaign.look()
    await _finish(campaign, pod, call, gives_up=False)


async def _finish(campaign: Campaign, pod: Pod, call: Call, *, gives_up: bool) -> None:
    """The kubelet asks again until the pod has come and gone."""
    if call is Call.PREPARE and not gives_up:
        await campaign.must(Call.PREPARE, pod)
        await campaign.quiet()
    await campaign.leave(pod)
    await campaign.quiet()


def _is_whole(file: Path) -> bool:
    return file.exists() and b'"prepared"' in file.read_bytes()
