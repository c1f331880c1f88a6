"""What is really there: the hardware's own state, files and API, without the product's plans.

The checks are those of ARCHITECTURE.md, what must hold: nothing prepared twice, agreement and no
leak after a restart, running containers undisturbed, only valid objects in the API.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from chaoscampaign.node import Node
from chaoscampaign.rollback import whole
from chaoscampaign.workload import Pod
from dragoon.api.slice_validation import check_pool, check_slice
from dragoon.errors import CdiError
from dragoon.gpu import naming
from dragoon.gpu.sim.state import State
from dragoon.kubelet.client import ClaimAnswer
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.injection import inject
from dragoon.prepare.paths import is_temporary

_MIB = 1 << 20
_REGION_MODE = 0o1777


@dataclass(frozen=True, slots=True)
class Life:
    """A container that lives with a claim, and what it was started with.

    files are the bytes of its spec, markers and region, with the inode of the region: a process
    has it mapped. instances are the UUIDs of its MIG devices; caps are (cgroup, bytes).
    """

    pod: Pod
    answer: ClaimAnswer
    files: Mapping[Path, tuple[int, bytes]]
    instances: frozenset[str]
    caps: frozenset[tuple[str, int]]


def observed(node: Node, pod: Pod, answer: ClaimAnswer) -> Life:
    """What a container is started with now."""
    state = node.hardware.read()
    uid = pod.claim.uid
    files = {
        path: _fingerprint(path)
        for folder in (node.paths.cdi_folder, node.paths.marker_folder)
        for path in _files(folder)
        if uid in path.name
    }
    region = region_file(node.paths, pod.uid, "main")
    if pod.wish.tier == "hami":
        files[region] = _fingerprint(region)
    spec = node.paths.spec(uid)
    text = spec.read_text() if spec.exists() else ""
    return Life(
        pod,
        answer,
        files,
        frozenset(one for one in _instances(state) if one in text),
        frozenset((cap.cgroup, cap.hard) for cap in _caps(state) if pod.uid in cap.cgroup),
    )


def complaints_of_start(life: Life) -> Iterator[str]:
    """What is wrong with what a container is started with (invariant 6: a limit is there)."""
    wanted = {
        "mig": len(life.instances) == len(life.pod.wish.results),
        "cgroup": bool(life.caps),
        "hami": any(path.name == "usage" for path in life.files) and _is_open_to_all(life),
    }
    if not wanted.get(life.pod.wish.kind, True):
        yield f"{life.pod.name}: answered without what makes it {life.pod.wish.kind}"
    if len(life.answer.devices) != len(life.pod.wish.results):
        yield f"{life.pod.name}: answered with {len(life.answer.devices)} devices"


def _is_open_to_all(life: Life) -> bool:
    """A region is used by whatever user the container has."""
    regions = [path for path in life.files if path.name == "usage"]
    return all(path.parent.stat().st_mode & 0o7777 == _REGION_MODE for path in regions)


def disturbed(node: Node, lives: Sequence[Life]) -> Iterator[str]:
    """Running containers that could not go on, or not start again, as they are."""
    state = node.hardware.read()
    documents = [path.read_bytes() for path in _files(node.cdi_root) if path.suffix == ".json"]
    for life in lives:
        name = f"{life.pod.name} ({life.pod.wish.kind})"
        for path, before in life.files.items():
            found = _fingerprint(path)
            if path.name != "usage":  # only a mapped file must stay the same file
                before, found = (0, before[1]), (0, found[1])  # noqa: PLW2901
            if found != before:
                yield f"{name}: {path.name} is not what its container was started with"
        for uuid in life.instances - _instances(state).keys():
            yield f"{name}: MIG instance {uuid} is gone"
        for cap in life.caps - {(cap.cgroup, cap.hard) for cap in _caps(state)}:
            yield f"{name}: its cap {cap} is gone"
        try:
            inject(documents, [one for d in life.answer.devices for one in d.cdi_ids])
        except CdiError as error:
            yield f"{name}: cannot start again: {error}"


def forgotten(node: Node, pods: Sequence[Pod]) -> Iterator[str]:
    """What a power cut took from the journal: an answered claim, or a part of a file."""
    for path in _files(node.paths.journal_folder):
        if (
            path.suffix == ".json"
            and not path.name.startswith(".")
            and not whole(path.read_bytes())
        ):
            yield f"journal: {path.name} is torn"
    for pod in pods:
        if not node.paths.journal(pod.claim.uid).exists():
            yield f"journal: {pod.name} ({pod.wish.kind}) was answered and is forgotten"


def given_twice(node: Node) -> Iterator[str]:
    """Hardware that two CDI specs hand out beyond what it has."""
    whole: Counter[str] = Counter()
    parts: dict[str, list[tuple[str, int, int]]] = {}
    instances = _instances(node.hardware.read())
    for file, name, uuid in _handed_out(node):
        card = str(naming.address_of(name))
        if "-mig-" in name:
            place = instances.get(uuid)
            parts.setdefault(card, []).extend([(file, *place)] if place else ())
        elif name.endswith("-shared"):
            parts.setdefault(card, [])
        else:
            whole[card] += 1
    for card, times in whole.items():
        if times > 1:
            yield f"card {card} is handed out whole {times} times"
        if card in parts:
            yield f"card {card} is handed out whole and in parts"
    for card, found in parts.items():
        for (file, start, size), (other, begin, length) in combinations(found, 2):
            if start < begin + length and begin < start + size:
                yield f"card {card}: {file} and {other} have the same memory slices"
    yield from _shares_beyond(node)


def _handed_out(node: Node) -> Iterator[tuple[str, str, str]]:
    """File, device and UUID of everything that a CDI spec of ours offers."""
    for path in _files(node.cdi_root):
        if path.suffix == ".json":
            for device in msgspec.json.decode(path.read_bytes())["devices"]:
                edits = device["containerEdits"]
                uuid = next(e for e in edits["env"] if e.startswith("DRAGOON_"))
                yield path.name, device["name"].split("_")[2], uuid.partition("=")[2]


def half_written(node: Node) -> list[Path]:
    """Files that a process writes now, or that one which died has left."""
    return [path for one in node.paths.folders for path in _files(one) if is_temporary(path)]


def left_over(node: Node, lives: Sequence[Life]) -> Iterator[str]:
    """Differences between the node and the claims that live on it, when nothing is under way.

    The plugin may tidy at any moment: what is `half_written` is another question.
    """
    state = node.hardware.read()
    uids = {life.pod.claim.uid for life in lives}
    journal = {
        path.name.removesuffix(".broken").removesuffix(".json")
        for path in _whole_files(node.paths.journal_folder)
    }
    yield from _differs("journal", journal, uids)
    specs = {node.paths.uid_of(path) or path.name for path in _files(node.cdi_root)}
    yield from _differs("CDI specs", specs, uids)
    expected = {path for life in lives for path in life.files}
    markers = {path for path in expected if path.parent == node.paths.marker_folder}
    yield from _differs("markers", set(_whole_files(node.paths.marker_folder)), markers)
    regions = {life.pod.uid for life in lives if life.pod.wish.tier == "hami"}
    found = {
        path.name.partition("_")[0]
        for path in node.paths.region_folder.iterdir()
        if not is_temporary(path)
    }
    yield from _differs("regions", found, regions)
    wanted = {uuid for life in lives for uuid in life.instances}
    yield from _differs("MIG instances", set(_instances(state)), wanted)
    caps = {cap for life in lives for cap in life.caps}
    yield from _differs("caps", {(cap.cgroup, cap.hard) for cap in _caps(state)}, caps)
    yield from _half_made(state)
    divided = {
        str(naming.address_of(device))
        for life in lives
        if life.pod.wish.kind == "mig"
        for device in life.pod.wish.devices
    }
    enabled = {str(state.address(n)) for n, card in enumerate(state.cards) if card.mig_enabled}
    yield from _differs("cards in MIG mode", enabled, divided)


async def invalid_in_api(node: Node) -> Iterator[str]:
    """Slices that the API server would refuse, or a pool that nobody can allocate from.

    Raises NodeError where the pool does not become that of a healthy node.
    """
    found = [finding for one in await node.slices() for finding in check_slice(one)]
    return map(str, (*found, *check_pool(await node.settled())))


def _shares_beyond(node: Node) -> Iterator[str]:
    """The hard caps of a card are no more than it has."""
    state = node.hardware.read()
    for n, card in enumerate(state.cards):
        total = (state.machine.cards[n].memory_mib or 0) * _MIB
        capped = sum(cap.hard for cap in card.caps if Path(cap.cgroup).is_dir())
        if capped > total:
            yield f"card {state.address(n)}: caps of {capped} bytes on {total}"


def _half_made(state: State) -> Iterator[str]:
    for number, card in enumerate(state.cards):
        for one in card.instances:
            if len(one.compute) != 1:
                yield f"card {state.address(number)}: GPU instance {one.identity} is half made"


def _instances(state: State) -> dict[str, tuple[int, int]]:
    """Start and size of every MIG device, by UUID."""
    return {
        compute.uuid: (one.start, one.size)
        for card in state.cards
        for one in card.instances
        for compute in one.compute
    }


def _caps(state: State) -> list[Any]:
    """A cap goes with its cgroup."""
    return [cap for card in state.cards for cap in card.caps if Path(cap.cgroup).is_dir()]


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []


def _whole_files(folder: Path) -> list[Path]:
    return [path for path in _files(folder) if not is_temporary(path)]


def _fingerprint(path: Path) -> tuple[int, bytes]:
    try:
        return path.stat().st_ino, path.read_bytes()
    except FileNotFoundError:
        return 0, b""


def _differs(what: str, found: set[Any], wanted: set[Any]) -> Iterator[str]:
    for one in sorted(map(str, found - wanted)):
        yield f"{what}: {one} is left over"
    for one in sorted(map(str, wanted - found)):
        yield f"{what}: {one} is missing"
