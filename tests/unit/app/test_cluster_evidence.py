"""What is gathered of a cluster whose API server answers only in part."""

from pathlib import Path

from dragoon.app.evidence import cluster
from dragoon.diagnose.checking import Evidence, Unread, run
from dragoon.diagnose.checking.evidence import known
from dragoon.kube.port import CLASSES, GANGS
from tests.scenario.damage import cluster_world
from tests.scenario.damage.cluster_world import ClusterWorld


async def gathered(world: ClusterWorld, patience: float) -> Evidence:
    evidence = Evidence(driver_name=cluster_world.DRIVER)
    return await cluster.gather(evidence, world.api, source="the test", patience=patience)


async def test_what_is_not_answered_in_time_costs_no_other_part(tmp_path: Path) -> None:
    world = await cluster_world.built(tmp_path)
    world.api.faults.hang(verb="list", times=None)
    found = await gathered(world, 0.05)
    late = Unread("no answer from the test within 0.05 s")
    assert (found.cluster, found.rights) == (late, late)
    assert set(known(found.served).values()) == {late}
    for part in (found.version, found.kept, found.admission):
        assert not isinstance(part, Unread)


async def test_one_list_that_does_not_come_costs_what_needs_it_and_nothing_else(
    tmp_path: Path,
) -> None:
    world = await cluster_world.built(tmp_path)
    world.api.faults.hang(verb="list", resource=GANGS, times=None)
    # More for a busy machine, on which the others take long, too.
    for patience in (0.1, 1.0, 10.0):
        found = await gathered(world, patience)
        if not isinstance(found.rights, Unread) and known(found.served)[CLASSES] == "":
            break
    why = f"no answer from the test within {patience:g} s"
    assert known(found.cluster).missing == (f"gangs: {why}",)
    assert {one for one, answer in known(found.served).items() if answer} == {GANGS}
    assert found.rights == ()
    skipped = {one.check.code: one.skipped for one in run(found, ("api", "gang")).results}
    assert {code for code, reason in skipped.items() if reason} == {
        *("GANG001", "GANG002", "GANG003", "GANG004", "GANG005"),
    }
