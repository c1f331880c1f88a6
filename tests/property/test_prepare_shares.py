"""Random lives of a node with shares: pods of every tier and whole GPUs on cards that are too few.

The API server may be wrong: what it allocates together can be more than the cards have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.api.opaque_config import TimeSlice
from dragoon.errors import ClaimError, DeviceBusyError, DragoonError, StateError
from dragoon.gpu.model import PciAddress
from dragoon.prepare.effects_memory import MemoryEffects
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.hami_steps import region_file
from tests.property.node_life import PATHS, NodeLife, run_lives, timeout
from tests.unit.prepare.scene import gpu, result
from tests.unit.prepare.sharing import (
    CARD,
    GIB,
    asks,
    container,
    pod_with_claims,
    share,
    sharing_scene,
)

CARDS = 2


@dataclass(frozen=True)
class Part:
    """What a claim has of one card. memory None: all of it."""

    card: int
    memory: int | None
    cores: int = 0


@dataclass(frozen=True)
class Owner:
    """A pod, its tier, and what its container `main` sees: the parts of all its claims."""

    uid: str
    tier: str
    parts: tuple[Part, ...]


Parts = tuple[Part, ...]


class SharingLife(NodeLife[Parts]):
    effects_of_a_call = 26
    """One prepare of a share of the tier hami has 20."""

    def __init__(self) -> None:
        super().__init__(sharing_scene(Tier.CGROUP, Tier.HAMI, Tier.NONE, interval=TimeSlice.LONG))
        self.owners: dict[ClaimRef, Owner] = {}

    @initialize(data=st.data())
    def power_on(self, data: st.DataObject) -> None:
        """Four pods with one or two claims each."""
        for number in range(4):
            tier = data.draw(st.sampled_from(["hami", "hami", "cgroup", "none", "whole"]))
            claims = {
                name: tuple(
                    Part(
                        data.draw(st.integers(0, CARDS - 1)),
                        None if tier == "whole" else data.draw(st.sampled_from([1, 8, 12])) * GIB,
                        data.draw(st.sampled_from([0, 60])) if tier in {"hami", "none"} else 0,
                    )
                    for _ in range(data.draw(st.integers(1, 1 if tier == "whole" else 2)))
                )
                for name in ("a", "b")[: data.draw(st.integers(1, 2))]
            }
            self.run(self.make_pod(f"p{number}", tier, claims))
        self.set_cgroups()
        self.start()

    async def make_pod(self, name: str, tier: str, claims: dict[str, tuple[Part, ...]]) -> None:
        results = {
            claim: [
                result(part.card, request=f"r{n}")
                if part.memory is None
                else share(
                    part.card,
                    f"{part.memory // GIB}Gi",
                    cores=str(part.cores),
                    request=f"r{n}",
                    share_id=f"{name}-{claim}-{n}",
                )
                for n, part in enumerate(parts)
            ]
            for claim, parts in claims.items()
        }
        config = {} if tier == "whole" else {claim: [asks(tier)] for claim in claims}
        pod, refs = await pod_with_claims(
            self.scene, name, results, container("main", *claims), config=config
        )
        everything = tuple(part for parts in claims.values() for part in parts)
        for claim, ref in refs.items():
            self.claims[ref] = claims[claim]
            self.owners[ref] = Owner(pod["metadata"]["uid"], tier, everything)

    def set_cgroups(self) -> None:
        """As the kubelet does, before it asks for devices."""
        for owner in self.owners.values():
            self.scene.disk.cards.cgroups.add(PATHS.pod_cgroups(owner.uid)[0])

    def check_boot(self) -> None:
        self.set_cgroups()

    def check_refusal(self, claim: ClaimRef, error: DragoonError, *, broken: bool) -> None:
        if isinstance(error, DeviceBusyError):
            assert self.crowded(claim), "refused without a reason"
        elif isinstance(error, ClaimError):
            assert not fit(self.claims[claim]), str(error)
        else:
            assert isinstance(error, StateError)
            assert broken

    def crowded(self, claim: ClaimRef) -> bool:
        """Whether the journal holds so much for others that this claim has no room."""
        others = {entry.claim for entry in self.journal().entries} - {claim}
        return not fit([part for one in (claim, *others) for part in self.claims[one]])

    @rule(data=st.data(), how=st.sampled_from(["spec", "region", "caps"]))
    @precondition(lambda self: self.in_use)
    def damage(self, data: st.DataObject, how: str) -> None:
        claim = data.draw(st.sampled_from(sorted(self.in_use, key=lambda one: one.name)))
        outside = MemoryEffects(self.scene.disk)
        if how == "spec":
            outside.remove(PATHS.spec(claim.uid))
        elif how == "region":
            outside.remove_tree(PATHS.region(self.owners[claim].uid, "main"))
        else:
            self.scene.disk.cards.caps.clear()
        self.start()

    @invariant()
    def no_card_gives_more_than_it_has(self) -> None:
        for card in range(CARDS):
            held = [p for claim in self.in_use for p in self.claims[claim] if p.card == card]
            assert fit(held), held

    @invariant()
    def every_container_is_kept_to_its_shares(self) -> None:
        cards = self.scene.disk.cards
        for claim in self.in_use:
            owner = self.owners[claim]
            if owner.tier == "hami":
                data = self.scene.disk.files()[region_file(PATHS, owner.uid, "main")]
                found = [(one.uuid, one.limit) for one in region.read(data)]
                assert found == [
                    (gpu(card).uuid, owned(owner, card))
                    for card in range(CARDS)
                    if owned(owner, card)
                ]
            for part in self.claims[claim]:
                if owner.tier == "cgroup":
                    key = (PciAddress(0, 0x10 + part.card, 0), PATHS.pod_cgroups(owner.uid)[0])
                    assert cards.caps[key] == owned(owner, part.card)
                if owner.tier == "none":
                    assert cards.time_slices[gpu(part.card).uuid] is TimeSlice.LONG

    @invariant()
    def every_container_can_restart(self) -> None:
        disk = self.scene.disk
        files = disk.files()
        for claim in self.in_use:
            for mount in self.inside(claim).mounts:
                host = Path(mount.host_path)
                assert host in files or disk.find_folder(host) is not None

    def check_end(self) -> None:
        cards = self.scene.disk.cards
        assert MemoryEffects(self.scene.disk).names(PATHS.region_folder) == ()
        assert (cards.caps, cards.time_slices) == ({}, {})


def owned(owner: Owner, card: int) -> int:
    """What a pod's claims have of a card together, at most all of it."""
    return min(sum(part.memory or 0 for part in owner.parts if part.card == card), CARD)


def fit(parts: Sequence[Part]) -> bool:
    """Whether each card has that much, and whole ones are not shared."""
    for card in range(CARDS):
        here = [part for part in parts if part.card == card]
        whole = sum(part.memory is None for part in here)
        memory = sum(part.memory or 0 for part in here)
        cores = sum(part.cores for part in here)
        if (whole and len(here) > 1) or memory > CARD or cores > 100:
            return False
    return True


@timeout
def test_no_life_of_a_node_gives_more_of_a_gpu_than_there_is() -> None:
    run_lives(SharingLife, lives=60, steps=25)
