"""Which tiers a node has, and what the one used by default does."""

from dragoon.api.enforcement import STRENGTHS, Compute, Memory, NodeEnforcement, Tier


def test_every_tier_has_a_strength() -> None:
    assert set(STRENGTHS) == set(Tier)


def test_the_first_tier_is_the_default() -> None:
    found = NodeEnforcement.of([Tier.HAMI, Tier.CGROUP, Tier.HAMI])
    assert found.tiers == (Tier.HAMI, Tier.CGROUP)
    assert found.default is Tier.HAMI
    assert found.strength == STRENGTHS[Tier.HAMI]


def test_a_node_without_tiers_has_no_default_and_no_strength() -> None:
    found = NodeEnforcement.of([], {Tier.CGROUP: "the driver is too old"})
    assert found.default is None
    assert found.strength is None


def test_mig_makes_no_shares() -> None:
    assert NodeEnforcement.of([Tier.MIG, Tier.NONE]).tiers == (Tier.NONE,)


def test_only_mig_isolates_both() -> None:
    strong = [
        t for t, s in STRENGTHS.items() if s.memory is Memory.HARD and s.compute is Compute.HARD
    ]
    assert strong == [Tier.MIG]
