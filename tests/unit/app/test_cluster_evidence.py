"""What is gathered of a cluster whose API server answers only in part."""

from pathlib import Path

from dragoon.app.evidence import cluster
from dragoon.diagnose.checking import Evidence, Unread, run
from dragoon.diagnose.checking.evidence import known
from dragoon.kube.port import GANGS
from tests.scenario.damage import cluster_world
from tests.scenario.damage.cluster_world import ClusterWorld


async def gathered(world: ClusterWorld, patience: float) -> Evidence:
    evidence = Evidence(driver_name=cluster_world.DRIVER)
    return await cluster.gather(evidence, world.api, source="the test", patience=patience)


LONGER = (0.1, 1.0, 10.0)
"""More for a busy machine, on which what does answer takes long, too."""
NEED_GANGS = {f"GANG00{number}" for number in range(1, 6)}


def skipped(found: Evidence) -> set[str]:
    """The checks that cannot be made."""
    return {one.check.code for one in run(found, ("api", "gang")).results if one.skipped}


async def test_what_is_not_answered_in_time_costs_no_other_part(tmp_path: Path) -> None:
    world = await cluster_world.built(tmp_path)
    world.api.faults.hang(verb="list", times=None)
    for patience in LONGER:
        found = await gathered(world, patience)
        others = (found.version, found.kept, found.admission)
        if not any(isinstance(part, Unread) for part in others):
            break
    assert not any(isinstance(part, Unread) for part in others)
    late = Unread(f"no answer from the test within {patience:g} s")
    assert (found.cluster, found.rights) == (late, late)
    assert set(known(found.served).values()) == {late}


async def test_one_list_that_does_not_come_costs_what_needs_it_and_nothing_else(
    tmp_path: Path,
) -> None:
    world = await cluster_world.built(tmp_path)
    world.api.faults.hang(verb="list", resource=GANGS, times=None)
    for patience in LONGER:
        found = await gathered(world, patience)
        why = f"no answer from the test within {patience:g} s"
        if skipped(found) == NEED_GANGS and known(found.cluster).missing == (f"gangs: {why}",):
            break
    assert skipped(found) == NEED_GANGS
    assert known(found.cluster).missing == (f"gangs: {why}",)
    assert {one for one, answer in known(found.served).items() if answer} == {GANGS}
    assert found.rights == ()
