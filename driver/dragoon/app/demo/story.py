"""The demo's story: what is shown, in which order, and what must be true at every step."""

from collections import Counter
from collections.abc import Iterable, Mapping

import yaml

from dragoon.api.claims import AllocatedDevice
from dragoon.app.demo import requests
from dragoon.app.demo.requests import Request
from dragoon.app.demo.stage import DemoError, Inside, Stage, Teller
from dragoon.app.device_view import DeviceView, views

_HEADER = ("GPU", "PRODUCT", "MEMORY", "NVLINK DOMAIN", "NUMA")
_NEXT = (
    ("topo --simulate a40-8way-bridge-pairs", "a machine whose GPUs are linked in pairs"),
    ("devices --simulate dgx-h100 -o yaml", "the ResourceSlices behind this demo"),
    ("devices", "the GPUs of this machine"),
)


async def tell(stage: Stage, teller: Teller, *, program: str = "dragoon") -> None:
    """Plays the whole story. Raises DemoError at the first thing that is not as told.

    program: how the reader calls `dragoon`.
    """
    devices = {device.name: device for device in views(await stage.slices())}
    _show_node(devices, teller)

    forty = requests.with_memory(stage.driver, stage.device_class)
    got, _ = await _ask_and_run(stage, teller, forty, devices)
    sizes = [devices[device.device].memory for device in got]
    _demand(len(got) == 1, "the claim got one GPU", got)
    _demand(all(size and size >= requests.ENOUGH for size in sizes), "it is large enough", sizes)

    pair = requests.linked("pair", 2, stage.driver, stage.device_class)
    got, inside = await _ask_and_run(stage, teller, pair, devices)
    domains = {devices[device.device].nvlink_domain for device in got}
    _demand(len(got) == 2, "the claim got two GPUs", got)
    _demand(len(domains) == 1 and "" not in domains, "they are in one NVLink domain", domains)

    await _ask_too_much(stage, teller, len(devices))
    await _crash(stage, teller, pair, inside)
    await stage.end_pod(pair.name)
    await stage.end_pod(forty.name)
    teller.section("Try next")
    for arguments, words in _NEXT:
        teller.say(f"{program} {arguments}   # {words}")


def _show_node(devices: Mapping[str, DeviceView], teller: Teller) -> None:
    _demand(bool(devices), "the node publishes GPUs", list(devices))
    teller.section("The node")
    rows = [
        (d.name, d.product, d.memory_text, d.nvlink_domain, d.numa_node) for d in devices.values()
    ]
    teller.table(_HEADER, rows)
    groups = Counter(device.nvlink_domain for device in devices.values())
    alone = groups.pop("", 0)
    linked = ", ".join(f"{size} GPUs in domain {name}" for name, size in groups.items())
    teller.say(f"Linked by NVLink: {linked or 'none'}" + (f"; {alone} alone" if alone else ""))


async def _ask_and_run(
    stage: Stage, teller: Teller, request: Request, devices: Mapping[str, DeviceView]
) -> tuple[tuple[AllocatedDevice, ...], Inside]:
    teller.section(f"A pod that needs {request.words}")
    teller.block("You ask", request.text)
    answer = await stage.ask(request.claim)
    if not answer.devices:
        raise DemoError(f"claim {request.name}: nothing fits", hint="\n".join(answer.why))
    teller.block("You get", "\n".join(_described(devices[d.device]) for d in answer.devices))
    teller.block("Why these", "\n".join(answer.why))
    inside = await stage.start_pod(request.name)
    _show_inside(inside, teller)
    _check_inside(inside, [d.device for d in answer.devices], devices)
    return answer.devices, inside


async def _ask_too_much(stage: Stage, teller: Teller, count: int) -> None:
    request = requests.linked("all", count, stage.driver, stage.device_class)
    teller.section("A claim that cannot fit")
    teller.block("You ask", request.text)
    answer = await stage.ask(request.claim)
    _demand(not answer.devices, "the claim gets nothing", answer.devices)
    _demand(bool(answer.why), "there is a reason", answer)
    teller.block("It waits, because", "\n".join(answer.why))


async def _crash(stage: Stage, teller: Teller, request: Request, before: Inside) -> None:
    teller.section("The plugin is killed while the pod runs")
    process = await stage.kill_plugin()
    teller.say(f"kill -9 {process}")
    await stage.restart_plugin()
    teller.say("started again, registered with the kubelet, slices in place")
    after = await stage.start_again(request.name)
    _demand(after == before, "the container sees the same as before", (before, after))
    teller.say(f"claim {request.name} prepared again: the same answer, the same devices")


def _show_inside(inside: Inside, teller: Teller) -> None:
    given = inside.given
    lines = [*given.env, *(node.path for node in given.device_nodes)]
    lines += [f"{mount.container_path}  ({', '.join(mount.options)})" for mount in given.mounts]
    teller.block("Inside the container", "\n".join(lines))
    spec = yaml.safe_load(inside.text)  # JSON is YAML, which is half as long
    shown = yaml.safe_dump(spec, sort_keys=False, default_flow_style=None, width=1000)
    teller.block(f"By the CDI spec {inside.spec}", shown)


def _check_inside(inside: Inside, got: Iterable[str], devices: Iterable[str]) -> None:
    """The container sees what it was given and nothing of the other devices."""
    given = inside.given
    seen = " ".join(
        [
            *given.env,
            *(node.path for node in given.device_nodes),
            *(mount.container_path for mount in given.mounts),
        ]
    )
    mine = set(got)
    found = {name for name in devices if name in seen}
    _demand(found == mine, f"the container sees {sorted(mine)} and no other GPU", sorted(found))


def _described(device: DeviceView) -> str:
    domain = device.nvlink_domain
    return (
        f"{device.name}: {device.product}, {device.memory_text}, "
        f"{f'NVLink domain {domain}' if domain else 'no NVLink partner'}"
    )


def _demand(truth: bool, what: str, found: object) -> None:  # noqa: FBT001 - reads as a sentence
    if not truth:
        raise DemoError(f"not as it should be: {what}", hint=f"found {found}")
