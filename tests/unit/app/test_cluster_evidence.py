"""What is gathered of a cluster whose API server answers only in part."""

from pathlib import Path

from dragoon.app.evidence import cluster
from dragoon.diagnose.checking import Evidence, Unread
from tests.scenario.damage import cluster_world


async def test_what_is_not_answered_in_time_costs_no_other_part(tmp_path: Path) -> None:
    world = await cluster_world.built(tmp_path)
    world.api.faults.hang(verb="list", times=None)
    evidence = Evidence(driver_name=cluster_world.DRIVER)
    found = await cluster.gather(evidence, world.api, source="the test", patience=0.05)
    late = Unread("no answer from the test within 0.05 s")
    assert (found.cluster, found.served, found.rights) == (late, late, late)
    for part in (found.version, found.kept, found.admission):
        assert not isinstance(part, Unread)
