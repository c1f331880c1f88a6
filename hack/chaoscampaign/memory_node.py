"""A node on a disk in memory: what stands on it, who lives there, and what must be true of it.

The checks know only the disk, the cards and what containers were started with.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from chaoscampaign.rollback import whole
from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import CdiError
from dragoon.gpu.model import Inventory
from dragoon.prepare.enforcement.hami_steps import region_file
from dragoon.prepare.injection import inject
from dragoon.prepare.paths import SET_ASIDE, is_temporary
from dragoon.prepare.port import PreparedDevice
from tests.unit.prepare.migging import H100, OFF, PATHS, MigScene
from tests.unit.prepare.scene import gpu, result
from tests.unit.prepare.sharing import (
    CARD,
    asks,
    enforcement,
    install_library,
    pod_with_claims,
    share,
)

CARDS = 4
_REGION_MODE = 0o1777
_SHARES = frozenset({"hami", "cgroup", "none"})


@dataclass(eq=False)
class Job:
    """A pod with one claim.

    answer and started_with are of its running container, if any. half: the kubelet has called and
    not got what it wanted yet. gone: pod and claim are deleted.
    """

    kind: str
    cards: frozenset[int]
    claim: ClaimRef
    pod_uid: str
    pod: str
    answer: tuple[PreparedDevice, ...] = ()
    started_with: dict[str, Any] = field(default_factory=dict)
    half: bool = False
    gone: bool = False

    def end(self) -> None:
        """Its container has ended."""
        self.answer, self.started_with = (), {}


class MemoryNode:
    """The machine, which outlives processes, and the pods that were scheduled to it."""

    def __init__(self) -> None:
        self.scene = MigScene(*(H100,) * CARDS)
        self.jobs: list[Job] = []
        self._boots = 1

    async def furnish(self) -> None:
        """One job of each kind. Some of them were given what others have: the API may be wrong."""
        scene = self.scene
        cards = tuple(
            gpu(n, mig=OFF, memory_bytes=CARD, compute_capability=(9, 0)) for n in range(CARDS)
        )
        scene.gpus.found = Inventory(gpus=cards, simulated=True)
        scene.enforcement = enforcement(Tier.CGROUP, Tier.HAMI, Tier.NONE, interval=TimeSlice.LONG)
        install_library(scene)
        big = scene.mig_result("3g.40gb", 4, 1, request="big")
        small = scene.mig_result("1g.10gb", 1, 1, request="small")
        await self._add("whole", {0}, [result(0)])
        await self._add("pair", {0, 3}, [result(0, request="a"), result(3, request="b")])
        await self._add("mig", {1}, [big, small])
        await self._add("thief", {1}, [result(1)])
        await self._add("hami", {2}, [share(2, "4Gi", cores="10")])
        await self._add("cgroup", {2}, [share(2, "6Gi", share_id="s-2")])
        await self._add("none", {2}, [share(2, "1Gi", share_id="s-3")])
        self._make_cgroups()

    def next_boot(self) -> str:
        """The id of a new boot."""
        self._boots += 1
        return f"boot-{self._boots}"

    def booted(self) -> None:
        """No container lives any more; the kubelet has made the cgroups of its pods."""
        for job in self.jobs:
            job.half = bool(job.answer) or job.half
            job.end()
        self._make_cgroups()

    def problems(self) -> Iterator[str]:
        """Everything that is wrong now."""
        live = [job for job in self.jobs if job.answer]
        for job in live:
            yield from self._disturbed(job)
        for one, other in combinations([job for job in live if job.kind not in _SHARES], 2):
            if one.cards & other.cards:
                yield f"{one.kind} and {other.kind} have the same card"
        if not any(job.half for job in self.jobs):
            yield from self._left_over_files(live)
            yield from self._left_over_on_cards(live)

    def forgotten(self) -> Iterator[str]:
        """What a power cut took. What was answered must be known, and no file may be torn.

        Otherwise a claim could be prepared on another card than before, and nobody would notice.
        """
        files = self.scene.disk.files()
        for job in self.jobs:
            data = files.get(PATHS.journal(job.claim.uid))
            if data is None and job.answer:
                yield f"{job.kind}: the journal has forgotten it"
            if data is not None and not whole(data):
                yield f"{job.kind}: its journal entry is torn"

    def seen_by(self, job: Job) -> dict[str, Any]:
        """All that a container of the job was, or would be, started with."""
        files = self.scene.disk.files()
        cards = self.scene.disk.cards
        specs = [data for path, data in files.items() if path.parent == PATHS.cdi_folder]
        spec = files.get(PATHS.spec(job.claim.uid), b"")
        try:
            got: Any = inject(specs, [one for d in job.answer for one in d.cdi_ids])
        except CdiError as error:
            got = str(error)
        return {
            "injection": got,
            "spec": spec,
            "region": files.get(region_file(PATHS, job.pod_uid, "main")),
            "caps": {key: cap for key, cap in cards.caps.items() if job.pod_uid in str(key[1])},
            "time slices": dict(cards.time_slices) if job.kind == "none" else None,
            "instances": {
                one.uuid
                for number in range(CARDS)
                for one in self.scene.card(number).instances
                if one.uuid and one.uuid.encode() in spec
            },
            "markers": {
                path: data
                for path, data in files.items()
                if path.parent == PATHS.marker_folder and job.claim.uid in path.name
            },
        }

    async def _add(self, kind: str, cards: set[int], results: list[dict[str, Any]]) -> None:
        config = {"c": [asks(kind)]} if kind in _SHARES else None
        pod, claims = await pod_with_claims(self.scene, kind, {"c": results}, config=config)
        uid = pod["metadata"]["uid"]
        self.jobs.append(Job(kind, frozenset(cards), claims["c"], uid, kind))

    def _make_cgroups(self) -> None:
        """As the kubelet does, before it asks for devices."""
        for job in self.jobs:
            self.scene.disk.cards.cgroups.add(PATHS.pod_cgroups(job.pod_uid)[2])

    def _disturbed(self, job: Job) -> Iterator[str]:
        now = self.seen_by(job)
        for what, before in job.started_with.items():
            if now.get(what) != before:
                yield f"{job.kind}: {what} is not what its container was started with"
        folder = PATHS.region(job.pod_uid, "main")
        if job.kind == "hami" and self.scene.disk.mode(folder) != _REGION_MODE:
            yield f"{job.kind}: only root can use its region"

    def _left_over_files(self, live: list[Job]) -> Iterator[str]:
        uids = {job.claim.uid for job in live}
        pods = {job.pod_uid for job in live}
        files = self.scene.disk.files()
        # A claim whose entry cannot be read may need any region.
        all_known = not any(SET_ASIDE in path.name for path in files)
        for path, data in files.items():
            if not path.is_relative_to(self.scene.root) or path == PATHS.lock:
                continue
            is_region = path.is_relative_to(PATHS.region_folder)
            if is_region and not all_known and not is_temporary(path):
                continue
            owners = pods if is_region else uids
            if not any(owner in str(path) for owner in owners) and not self._is_old(path, data):
                yield f"{path} is left over"

    def _left_over_on_cards(self, live: list[Job]) -> Iterator[str]:
        for number in range(CARDS):
            card = self.scene.card(number)
            wanted = 2 if any(job.kind == "mig" and number in job.cards for job in live) else 0
            if len(card.instances) != wanted or not all(one.is_whole for one in card.instances):
                yield f"card {number}: {card.instances} with {wanted} wanted"
            if card.card.mode.enabled is not bool(wanted):
                yield f"card {number}: MIG mode is wrong"
        cards, kinds = self.scene.disk.cards, {job.kind for job in live}
        if bool(cards.caps) is not ("cgroup" in kinds):
            yield f"caps: {cards.caps}"
        if bool(cards.time_slices) is not ("none" in kinds):
            yield f"time slices: {cards.time_slices}"

    def _is_old(self, path: Path, data: bytes) -> bool:
        """An entry that a power cut brought back: it holds nothing, and goes with its claim."""
        is_entry = path.parent == PATHS.journal_folder
        earlier = self.scene.disk.boot_id.encode() not in data
        there = any(job.claim.uid in path.name and not job.gone for job in self.jobs)
        return is_entry and earlier and there
