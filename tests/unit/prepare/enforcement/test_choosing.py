"""Which tiers work on a node and which one a share gets: never another one, never in silence."""

import asyncio
import hashlib
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.opaque_config import Priority, SharedGpuConfig, ShareTier
from dragoon.errors import HardwareError, StateError
from dragoon.gpu.model import Inventory
from dragoon.prepare.clock import ManualClock
from dragoon.prepare.enforcement.cgroup import Cgroup
from dragoon.prepare.enforcement.choosing import Enforcement
from dragoon.prepare.enforcement.errors import TierUnavailableError, UnenforceableError
from dragoon.prepare.enforcement.hami import Hami
from dragoon.prepare.enforcement.none import Unenforced
from dragoon.prepare.enforcement.probing import Probing
from dragoon.prepare.enforcement.tier import Grant, Measures
from dragoon.prepare.observing import Reported
from tests.unit.prepare.scene import result, until
from tests.unit.prepare.sharing import (
    PATHS,
    asks,
    enforcement,
    pod_with_claims,
    refused,
    share,
    sharing_scene,
)

REF = ClaimRef("team-a", "one", "0a")


def chosen(found: Enforcement, tier: ShareTier | None = None) -> Tier:
    return found.choose(REF, "slice", SharedGpuConfig(tier=tier)).name


def test_without_a_wish_a_share_gets_the_strongest_tier() -> None:
    assert chosen(enforcement(Tier.CGROUP, Tier.HAMI, Tier.NONE)) is Tier.CGROUP
    assert chosen(enforcement(Tier.HAMI, Tier.NONE)) is Tier.HAMI
    assert chosen(enforcement(Tier.NONE)) is Tier.NONE


@pytest.mark.parametrize("tier", list(ShareTier))
def test_a_wish_is_met_or_refused_and_never_replaced(tier: ShareTier) -> None:
    everything = enforcement(Tier.CGROUP, Tier.HAMI, Tier.NONE)
    assert chosen(everything, tier) == Tier(tier)
    others = enforcement(*(one for one in everything.found.tiers if one != tier))  # type: ignore[union-attr]
    with pytest.raises(TierUnavailableError, match=f"tier: found {tier}, allowed") as caught:
        chosen(others, tier)
    assert "switched off here" in str(caught.value), "the reason of the probe"
    assert caught.value.code == "EnforcementUnavailable"
    assert not caught.value.retryable


def test_a_node_without_tiers_says_why_of_each() -> None:
    found = Enforcement((Cgroup(), Hami(PATHS), Unenforced()))
    found.probe(Inventory())
    with pytest.raises(TierUnavailableError, match="cannot be shared") as caught:
        chosen(found)
    for told in ("r615", "set hamiLibrary and hamiSha256", "allowUnenforcedShares"):
        assert told in str(caught.value)


def test_c41_m15_a_tier_that_is_switched_off_names_its_switch() -> None:
    found = Enforcement((Hami(PATHS), Unenforced(allowed=False)))
    found.probe(Inventory())
    with pytest.raises(TierUnavailableError, match="set allowUnenforcedShares"):
        chosen(found, ShareTier.NONE)


def test_before_the_first_probe_a_share_waits() -> None:
    with pytest.raises(TierUnavailableError) as caught:
        chosen(Enforcement((Unenforced(allowed=True),)))
    assert caught.value.retryable
    with pytest.raises(TierUnavailableError) as final:
        chosen(Enforcement())
    assert not final.value.retryable


@pytest.mark.parametrize("tier", [ShareTier.CGROUP, ShareTier.NONE])
def test_a_priority_is_refused_where_nothing_knows_it(tier: ShareTier) -> None:
    found = enforcement(Tier.CGROUP, Tier.HAMI, Tier.NONE)
    config = SharedGpuConfig(tier=tier, priority=Priority.LOW)
    with pytest.raises(UnenforceableError, match=f"priority: found Low, and the tier {tier}"):
        found.choose(REF, "slice", config)


@dataclass(frozen=True)
class Sick:
    """A tier whose probe fails."""

    name: ClassVar[Tier] = Tier.CGROUP
    needs_pod: ClassVar[bool] = True

    def probe(self, inventory: Inventory) -> str:
        raise HardwareError("the driver does not answer", hint="")

    def plan(self, grant: Grant) -> Measures:
        raise AssertionError


def test_a_probe_that_fails_is_a_tier_that_does_not_work_and_costs_no_other() -> None:
    found = Enforcement((Sick(), Unenforced(allowed=True)))
    assert found.probe(Inventory()) == NodeEnforcement(
        (Tier.NONE,), {Tier.CGROUP: "the driver does not answer"}
    )


async def test_an_unavailable_tier_refuses_before_anything_is_changed() -> None:
    scene = sharing_scene(Tier.HAMI)
    engine = await scene.started()
    config = {"a": [asks("cgroup")]}
    _, refs = await pod_with_claims(scene, "p", {"a": [result(1), share(0)]}, config=config)
    assert "found cgroup, allowed on this node: hami" in str(await refused(engine, refs["a"]))
    assert scene.files == {}


# the library


def library(folder: Path, data: bytes | None = None, mode: int = 0o644) -> tuple[Path, str]:
    """A 64-bit ELF file for this machine, or what is given."""
    path = folder / "lib.so"
    path.write_bytes(Path(sys.executable).resolve().read_bytes()[:4096] if data is None else data)
    path.chmod(mode)
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_library_that_is_the_one_meant_works(tmp_path: Path) -> None:
    assert not Hami(PATHS, *library(tmp_path)).probe(Inventory())


def test_a_wrong_checksum_says_what_was_found_and_what_is_set(tmp_path: Path) -> None:
    path, checksum = library(tmp_path)
    told = Hami(PATHS, path, "0" * 64).probe(Inventory())
    assert checksum in told
    assert f"hamiSha256 is {'0' * 64}" in told


@pytest.mark.parametrize(
    ("data", "mode", "told"),
    [
        (b"#!/bin/sh\n", 0o644, "is no 64-bit shared library"),
        (b"\x7fELF\x01" + bytes(100), 0o644, "is no 64-bit shared library"),
        (b"\x7fELF\x02" + bytes(13) + struct.pack("<H", 8) + bytes(99), 0o644, "is no 64-bit"),
        (None, 0o600, "mode 0600 does not let every user read it"),
    ],
)
def test_a_library_that_the_loader_would_ignore_is_not_offered(
    tmp_path: Path, data: bytes | None, mode: int, told: str
) -> None:
    assert told in Hami(PATHS, *library(tmp_path, data, mode)).probe(Inventory())


def test_a_library_that_is_missing_or_not_set_says_so(tmp_path: Path) -> None:
    assert "No such file" in Hami(PATHS, tmp_path / "none.so", "0" * 64).probe(Inventory())
    assert "hamiLibrary" in Hami(PATHS).probe(Inventory())


# probing again and again


async def test_what_works_is_told_first_and_then_only_when_it_changes(tmp_path: Path) -> None:
    path, checksum = library(tmp_path)
    told: list[NodeEnforcement] = []
    clock = ManualClock()

    async def look() -> Inventory:
        return Inventory()

    probing = Probing(Enforcement((Hami(PATHS, path, checksum),)), look, told.append, clock=clock)
    life = asyncio.create_task(probing.run())
    for _ in range(3):
        await until(lambda: clock.sleeping > 0)
        clock.advance(60)
    await until(lambda: clock.sleeping > 0)
    assert [one.tiers for one in told] == [(Tier.HAMI,)]
    path.write_bytes(b"replaced")
    clock.advance(60)
    await until(lambda: len(told) == 2)
    assert told[1].tiers == ()
    life.cancel()


async def test_without_hardware_to_ask_what_was_found_stands_and_is_asked_again_soon() -> None:
    looks: list[bool] = []
    told: list[NodeEnforcement] = []
    events: list[object] = []
    clock = ManualClock()

    async def look() -> Inventory:
        looks.append(True)
        if len(looks) < 3:
            raise StateError("the simulated machine is gone")
        return Inventory()

    probing = Probing(
        Enforcement((Unenforced(allowed=True),)),
        look,
        told.append,
        clock=clock,
        observer=events.append,
    )
    life = asyncio.create_task(probing.run())
    while not told:
        await until(lambda: clock.sleeping > 0 or bool(told))
        clock.advance(1)
    assert len(looks) == 3
    assert [type(one) for one in events] == [Reported], "once, not at every try"
    life.cancel()
