"""The guard from outside: who waits for whom, what is said, and that it ends."""

import asyncio
from typing import Any

import pytest

from dragoon.api.claims import ClaimRef
from dragoon.api.enforcement import Tier
from dragoon.errors import ClaimGoneError, ClaimInUseError, DeviceBusyError
from dragoon.kube.port import CLAIMS
from dragoon.prepare.effects_memory import MemoryEffects
from tests.unit.prepare.migging import H100, PATHS, MigScene
from tests.unit.prepare.scene import Scene, device, result, until
from tests.unit.prepare.sharing import asks, pod_with_claims, share, sharing_scene


async def test_c35_a_refusal_names_the_holder_and_the_card_and_the_next_try_succeeds() -> None:
    """The kubelet asks again only after 60 to 90 s, long after the holder has ended."""
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    old, new = await scene.claim("old"), await scene.claim("new")
    await engine.prepare(old)
    with pytest.raises(DeviceBusyError) as caught:
        await engine.prepare(new)
    assert caught.value.retryable
    assert f"team-a/old ({old.uid})" in caught.value.message
    assert "holds GPU 0000:10:00.0" in caught.value.message

    await engine.unprepare(old)
    assert [one.device for one in await engine.prepare(new)] == [device(0)]


async def test_c35_a_refused_claim_leaves_nothing_behind() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    await engine.prepare(await scene.claim("old"))
    before = scene.files
    with pytest.raises(DeviceBusyError):
        await engine.prepare(await scene.claim("new"))
    assert scene.files == before


async def test_c35_of_two_claims_on_one_card_only_the_one_that_is_in_the_way_is_named() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    await engine.prepare(await scene.claim("pair", result(0), result(1, request="b")))
    with pytest.raises(DeviceBusyError, match=r"team-a/pair .* holds GPU 0000:11:00\.0 \("):
        await engine.prepare(await scene.claim("late", result(1)))


async def test_c35_overlapping_instances_are_told_by_their_place() -> None:
    scene = MigScene(H100)
    engine = await scene.started(wait_s=0.0)
    await engine.prepare(await scene.claim("big", scene.mig_result("4g.40gb", 0)))
    with pytest.raises(DeviceBusyError, match=r"holds 4g\.40gb at 0:4 of GPU 0000:10:00\.0"):
        await engine.prepare(await scene.claim("small", scene.mig_result("1g.10gb", 1)))


async def test_c35_shares_beyond_the_card_wait_until_the_sum_fits() -> None:
    scene = sharing_scene(Tier.NONE)
    engine = await scene.started(wait_s=0.0)
    first, second, third = [
        (await pod_with_claims(scene, n, {"c": [some]}, config={"c": [asks("none")]}))[1]["c"]
        for n, some in (("a", share(0, "16Gi")), ("b", share(0, "8Gi")), ("d", share(0, "1Gi")))
    ]
    await engine.prepare(first)
    await engine.prepare(second)
    with pytest.raises(DeviceBusyError, match="holds a share of GPU"):
        await engine.prepare(third)
    await engine.unprepare(second)
    assert await engine.prepare(third)


async def test_two_allocators_gave_one_card_to_three_claims_and_each_has_it_alone() -> None:
    scene = Scene()
    engine = await scene.started()
    claims = [await scene.claim(f"c{n}") for n in range(3)]
    calls = {claim: asyncio.create_task(engine.prepare(claim)) for claim in claims}
    order: list[ClaimRef] = []
    while calls:
        done, _ = await asyncio.wait(calls.values(), return_when=asyncio.FIRST_COMPLETED)
        (holder,) = [claim for claim, call in calls.items() if call in done]
        del calls[holder]
        order.append(holder)
        assert not any(call.done() for call in calls.values())
        await engine.unprepare(holder)
    assert sorted(order, key=str) == sorted(claims, key=str)
    assert scene.clock.now() < 40, "nobody had to wait for a time-out"


async def test_admin_access_neither_waits_nor_keeps_anything_from_others() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    admin: dict[str, Any] = result(0, adminAccess=True)
    await engine.prepare(await scene.claim("user"))
    await engine.prepare(await scene.claim("admin", admin))
    looking = Scene()
    engine = await looking.started(wait_s=0.0)
    await engine.prepare(await looking.claim("admin", admin))
    assert await engine.prepare(await looking.claim("user"))


async def test_a_claim_in_use_is_not_taken_back_and_its_card_stays_guarded() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0, ending_s=0.0)
    claim = await scene.claim("one")
    await scene.pod("user", claim)
    await engine.prepare(claim)
    with pytest.raises(ClaimInUseError, match="team-a/user") as caught:
        await engine.unprepare(claim)
    assert caught.value.retryable
    with pytest.raises(DeviceBusyError, match="team-a/one"):
        await engine.prepare(await scene.claim("two"))


async def test_c35_the_guard_is_never_skipped_by_another_process_or_a_damaged_entry() -> None:
    scene = Scene()
    engine = await scene.started(wait_s=0.0)
    old = await scene.claim("old")
    await engine.prepare(old)
    other = await scene.started(wait_s=0.0)
    new = await scene.claim("new")
    with pytest.raises(DeviceBusyError):
        await other.prepare(new)
    MemoryEffects(scene.disk).write(PATHS.journal(old.uid), b"", 0o600)
    with pytest.raises(DeviceBusyError, match=old.uid):
        await other.prepare(new)


async def test_c35_a_claim_deleted_while_it_waits_is_told_so() -> None:
    scene = Scene()
    engine = await scene.started()
    await engine.prepare(await scene.claim("old"))
    new = await scene.claim("new")
    call = asyncio.create_task(engine.prepare(new))
    await until(lambda: scene.clock.sleeping > 0)
    await scene.api.delete(CLAIMS, "new", namespace="team-a")
    scene.clock.advance(6)
    with pytest.raises(ClaimGoneError, match="does not exist any more"):
        await call
