"""Which node and devices are taken where several would do: those that others miss least."""

from collections.abc import Mapping

import pytest

from dragoon.allocator.gang import PlacementSnapshot
from dragoon.allocator.gang.demand import mix_of, wishes_of
from dragoon.allocator.gang.mix import KINDS, Mix
from tests.unit.allocator.gang.objects import (
    claim,
    devices_of,
    gang,
    gpus,
    member,
    node,
    planned,
    slices_of,
    snapshot,
    where,
    wish,
)
from tests.unit.allocator.objects import DRIVER, Raw, device, holding

SHARE = wish(1, "shared", capacity={"requests": {"memory": "10Gi"}})
PROFILES = {
    "1g": (1, range(7)),
    "2g": (2, (0, 2, 4)),
    "3g": (4, (0, 4)),
    "4g": (4, (0,)),
    "7g": (8, (0,)),
}
"""Memory slices, and where a profile can begin: an H100."""


def shareable(name: str, *, memory: str = "80Gi") -> list[Raw]:
    """A card that can be had whole or in shares."""
    uses = [{"counterSet": name, "counters": {"card": {"value": "1"}}}]
    return [
        device(name, type="gpu", consumesCounters=uses),
        device(
            f"{name}-shared",
            type="shared",
            allowMultipleAllocations=True,
            capacity={"memory": {"value": memory, "requestPolicy": _POLICY}},
            consumesCounters=uses,
        ),
    ]


_POLICY = {"default": "80Gi", "validRange": {"min": "512Mi", "step": "1Mi"}}


def of_shareable(*names: str, node: str = "n1") -> list[Raw]:
    sets = [{"name": name, "counters": {"card": {"value": "1"}}} for name in names]
    return slices_of(node, [one for name in names for one in shareable(name)], sets)


def mig_card(name: str) -> tuple[list[Raw], Raw]:
    """A card with all placements of its MIG profiles, and its counter set."""
    devices = [
        device(
            f"{name}-mig-{profile}-{start}",
            type="mig",
            profile=profile,
            consumesCounters=[
                {
                    "counterSet": name,
                    "counters": {
                        f"memory-{at}": {"value": "1"} for at in range(start, start + size)
                    },
                }
            ],
        )
        for profile, (size, starts) in PROFILES.items()
        for start in starts
    ]
    return devices, {"name": name, "counters": {f"memory-{at}": {"value": "1"} for at in range(8)}}


def profile(name: str) -> Raw:
    expression = f"device.attributes['{DRIVER}'].profile == '{name}'"
    return wish(1, "mig", selectors=[{"cel": {"expression": expression}}])


def share_held(device_name: str, memory: str, *, pool: str = "n1/gpu", name: str = "other") -> Raw:
    raw = holding(device_name, pool=pool, name=name)
    result = raw["status"]["allocation"]["devices"]["results"][0]
    result |= {
        "shareID": "00000000-0000-4000-8000-00000000aaaa",
        "consumedCapacity": {"memory": memory},
    }
    return raw


def asked_often(*requests: Raw, cpu: int = 1000) -> Mix:
    """The mix of a cluster where this is asked for."""
    return mix_of(
        {one: 10 for raw in requests for one in wishes_of({"cpu": cpu}, [claim("c", raw)])}
    )


def one(cluster: PlacementSnapshot, request: Raw, **fields: int) -> list[str]:
    """The devices that a single pod gets."""
    return devices_of(planned(cluster, gang([member("p", claim("c", request), **fields)])))["p"]


MIXES: Mapping[str, Mix] = {"of all kinds": KINDS, "learned": asked_often(wish(1), wish(2))}


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_a_share_goes_onto_the_card_that_is_shared_already(mix: Mix) -> None:
    slices = [*of_shareable("a", "b"), *of_shareable("c", node="n0")]
    cluster = snapshot([node("n0"), node("n1")], slices, [share_held("b-shared", "20Gi")], mix=mix)
    assert one(cluster, SHARE) == ["n1/b-shared"]


def test_a_share_goes_where_the_rest_is_still_of_use() -> None:
    slices = of_shareable("a", "b")
    held = [share_held("a-shared", "40Gi", name="x"), share_held("b-shared", "50Gi", name="y")]
    mix = asked_often(wish(1, "shared", capacity={"requests": {"memory": "30Gi"}}))
    cluster = snapshot([node("n1")], slices, held, mix=mix)
    # On a it would leave 30Gi, which the next one can use; on b 20Gi, which nobody can.
    assert one(cluster, SHARE) == ["n1/a-shared"]


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_one_gpu_comes_from_the_node_where_it_breaks_no_linked_pair(mix: Mix) -> None:
    slices = [*slices_of("n1", gpus("x", "x")), *slices_of("n2", gpus("y", "y", "z"))]
    cluster = snapshot([node("n1"), node("n2")], slices, mix=mix)
    assert one(cluster, wish(1)) == ["n2/gpu-2"]


@pytest.mark.parametrize("mix", [KINDS, asked_often(wish(1), wish(2), wish(4))])
def test_one_gpu_comes_from_a_broken_pair_before_a_whole_quad(mix: Mix) -> None:
    slices = [
        *slices_of("n1", gpus("a", "a", "a", "a")),
        *slices_of("n2", gpus("b", "b", "b", "b")),
    ]
    held = [holding("gpu-0", pool="n2/gpu"), holding("gpu-1", pool="n2/gpu", name="second")]
    held.append(holding("gpu-2", pool="n2/gpu", name="third"))
    cluster = snapshot([node("n1"), node("n2")], slices, held, mix=mix)
    assert one(cluster, wish(1)) == ["n2/gpu-3"]


def test_two_gpus_come_from_a_pair_before_a_quad() -> None:
    slices = slices_of("n1", gpus("q", "q", "q", "q", "p", "p"))
    cluster = snapshot([node("n1")], slices)
    assert one(cluster, wish(2)) == ["n1/gpu-4", "n1/gpu-5"]


def test_a_small_mig_instance_goes_where_the_largest_profiles_stay_possible() -> None:
    devices, counters = mig_card("a")
    cluster = snapshot([node("n1")], slices_of("n1", devices, [counters]))
    assert one(cluster, profile("1g")) == ["n1/a-mig-1g-6"]


def test_a_small_mig_instance_goes_onto_the_card_that_has_lost_its_large_ones() -> None:
    (first, one_set), (second, other_set) = mig_card("a"), mig_card("b")
    slices = slices_of("n1", [*first, *second], [one_set, other_set])
    held = [holding("b-mig-3g-0", pool="n1/gpu")]
    assert one(snapshot([node("n1")], slices, held), profile("1g")) == ["n1/b-mig-1g-6"]


def test_a_pod_that_takes_much_cpu_stays_off_the_node_whose_gpus_need_it() -> None:
    nodes = [node("n1", cpu=32_000), node("n2", cpu=32_000)]
    slices = [*slices_of("n1", gpus(*[None] * 4)), *slices_of("n2", gpus(None))]
    cluster = snapshot(nodes, slices, mix=asked_often(wish(1), cpu=8_000))
    ask = gang([member("p", cpu=24_000)])
    assert where(planned(cluster, ask)) == {"p": "n2"}


def test_of_cards_of_two_kinds_the_one_goes_first_that_fewer_ask_for() -> None:
    def model(name: str) -> str:
        return f"device.attributes['{DRIVER}'].productName == '{name}'"

    slices = [
        *slices_of("n1", [device("gpu-0", type="gpu", productName="large")]),
        *slices_of("n2", [device("gpu-0", type="gpu", productName="small")]),
    ]
    large = wish(1, selectors=[{"cel": {"expression": model("large")}}])
    cluster = snapshot([node("n1"), node("n2")], slices, mix=asked_often(large))
    assert one(cluster, wish(1)) == ["n2/gpu-0"]
    small = wish(1, selectors=[{"cel": {"expression": model("small")}}])
    cluster = snapshot([node("n1"), node("n2")], slices, mix=asked_often(small))
    assert one(cluster, wish(1)) == ["n1/gpu-0"]


def test_a_gang_takes_few_nodes_before_it_spares_what_others_want() -> None:
    slices = [
        *slices_of("n1", gpus("x", "x", "x", "x")),
        *slices_of("n2", gpus("y", None)),
        *slices_of("n3", gpus("z", None)),
    ]
    cluster = snapshot([node("n1"), node("n2"), node("n3")], slices)
    ask = gang([member(f"w{at}", claim(f"c{at}", wish(1))) for at in range(4)])
    assert set(where(planned(cluster, ask)).values()) == {"n1"}
