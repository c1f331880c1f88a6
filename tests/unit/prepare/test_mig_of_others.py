"""Case C21: instances and modes of somebody else are left alone, and named where they are in the way."""

import pytest

from dragoon.api.forms import Form
from dragoon.gpu.faults import (
    CardInUseError,
    FeatureMissingError,
    PlacementTakenError,
    ResetRequiredError,
)
from dragoon.prepare.observing import Reported
from tests.unit.prepare.migging import A100, H100, MigScene, ids, inside
from tests.unit.prepare.scene import gpu


async def test_c21_an_instance_in_the_way_is_named_and_left_alone() -> None:
    scene = MigScene(H100)
    theirs = scene.make("3g.40gb", 4)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 5))

    with pytest.raises(PlacementTakenError, match=f"in the way is .*{theirs.uuid}"):
        await engine.prepare(claim)

    assert scene.card().instances == (theirs,)
    assert scene.entries() == ()


async def test_c21_an_instance_of_somebody_else_is_handed_out_as_it_is() -> None:
    scene = MigScene(H100)
    theirs = scene.make("3g.40gb", 4)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("3g.40gb", 4))

    got = inside(scene, claim, *await ids(engine, claim))
    assert any(str(theirs.uuid) in entry for entry in got.env)
    (entry,) = scene.entries()
    assert entry.devices[0].mig is not None
    assert not entry.devices[0].mig.made

    await engine.unprepare(claim)
    assert scene.card().instances == (theirs,)
    assert scene.card().card.mode.enabled


async def test_c21_the_whole_card_is_not_had_while_somebody_has_instances_on_it() -> None:
    scene = MigScene(H100)
    theirs = scene.make("3g.40gb", 4)
    engine = await scene.started(wait_s=0.0)
    with pytest.raises(CardInUseError, match=str(theirs.uuid)):
        await engine.prepare(await scene.claim("whole"))
    assert scene.card().instances == (theirs,)


@pytest.mark.parametrize("forms", [(Form.WHOLE,), (Form.WHOLE, Form.SHARED)])
async def test_c21_a_node_that_does_not_list_mig_changes_no_card(forms: tuple[Form, ...]) -> None:
    scene = MigScene(H100, A100, forms=forms)
    engine = await scene.started(wait_s=0.0)
    for number, profile in ((0, "1g.10gb"), (1, "1g.5gb")):
        claim = await scene.claim(f"c{number}", scene.mig_result(profile, 0, number))
        with pytest.raises(FeatureMissingError, match="does not list the form mig"):
            await engine.prepare(claim)
    assert scene.entries() == ()
    assert not scene.card().card.mode.enabled


async def test_c21_a_mode_that_needs_a_reset_is_left_as_it_is() -> None:
    scene = MigScene(A100)
    engine = await scene.started()
    with pytest.raises(ResetRequiredError, match="MIG mode is on"):
        await engine.prepare(await scene.claim("whole"))

    scene.mig.set_mode(gpu(0).address, enabled=False)
    with pytest.raises(ResetRequiredError, match="MIG mode is off"):
        await engine.prepare(await scene.claim("part", scene.mig_result("1g.5gb", 0)))
    assert scene.entries() == ()


async def test_another_instance_at_the_same_place_is_not_removed_with_the_claim() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("1g.10gb", 0))
    await engine.prepare(claim)
    made = scene.card().instances[0]
    scene.mig.destroy(gpu(0).address, made.identity, made.uuid)
    theirs = scene.make("1g.10gb", 0)

    await engine.unprepare(claim)
    assert scene.card().instances == (theirs,)


async def test_a_lost_place_that_somebody_took_is_reported_and_left() -> None:
    scene = MigScene(H100)
    engine = await scene.started()
    claim = await scene.claim("c", scene.mig_result("2g.20gb", 0))
    await engine.prepare(claim)
    made = scene.card().instances[0]
    scene.mig.destroy(gpu(0).address, made.identity, made.uuid)
    theirs = scene.make("1g.10gb", 1)

    await scene.started()
    assert any(str(theirs.uuid) in told.problem for told in scene.told(Reported))
    assert scene.card().instances == (theirs,)
