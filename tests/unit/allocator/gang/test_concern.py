"""What concerns a gang that waits: nodes that it could be on, pools that it could have devices of."""

from dragoon.allocator.gang.concern import concern
from dragoon.allocator.model import PoolId, Taint
from tests.unit.allocator.gang.objects import (
    MIG,
    gang,
    gpus,
    member,
    members,
    node,
    partitioned,
    slices_of,
    snapshot,
    wish,
)
from tests.unit.allocator.objects import DRIVER


def pools(*nodes: str) -> frozenset[PoolId]:
    return frozenset(PoolId(DRIVER, f"{name}/gpu") for name in nodes)


def test_only_pools_with_a_device_that_is_asked_for_and_their_nodes() -> None:
    cluster = snapshot(
        [node("whole"), node("parts"), node("none")],
        [*slices_of("whole", gpus(None, None)), *slices_of("parts", partitioned(0)[1:])],
    )
    found = concern(cluster, gang(members(2, wish(1, MIG["metadata"]["name"]))))
    assert found is not None
    assert (found.nodes, found.pools) == (frozenset({"parts"}), pools("parts"))


def test_a_node_that_takes_no_member_does_not_concern_it_however_full_it_is() -> None:
    cluster = snapshot(
        [
            node("a", labels={"zone": "x"}, used={"cpu": 64_000}),
            node("b", labels={"zone": "y"}),
            node("c", labels={"zone": "x"}, taints=(Taint("k", "", "NoSchedule"),)),
        ],
        [one for name in "abc" for one in slices_of(name, gpus(None))],
    )
    found = concern(cluster, gang(members(1, wish(1), node_selector={"zone": "x"})))
    assert found is not None
    assert (found.nodes, found.pools) == (frozenset({"a"}), pools("a"))


def test_a_member_without_claims_is_concerned_by_every_node_that_takes_it() -> None:
    cluster = snapshot([node("a"), node("b")], slices_of("a", gpus(None)))
    found = concern(cluster, gang([*members(1, wish(1)), member("launcher")]))
    assert found is not None
    assert (found.nodes, found.pools) == (frozenset({"a", "b"}), pools("a"))


def test_what_cannot_be_read_concerns_everybody() -> None:
    cluster = snapshot([node("a")], slices_of("a", gpus(None)))
    wrong = {"name": "g", "exactly": {"deviceClassName": "whole", "count": "many"}}
    assert concern(cluster, gang(members(1, wrong))) is None
