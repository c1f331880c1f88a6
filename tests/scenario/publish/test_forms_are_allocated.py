"""What is published, as the allocator gives it away: cases C19, C26, m04 and m05."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.allocator import Allocated, allocate
from dragoon.api.enforcement import NodeEnforcement, Tier
from dragoon.api.forms import Form
from dragoon.gpu.model import Inventory
from dragoon.publish.choosing import Wishes
from dragoon.publish.slices import render
from tests.unit.publish.divided import divisible, division, possible, profiles
from tests.unit.publish.nodes import DRIVER, NODE, address
from tests.unit.publish.test_deviceclasses import CLASSES

Object = dict[str, Any]

HAMI = NodeEnforcement.of([Tier.HAMI])
NODE_OBJECT = {"metadata": {"name": NODE, "labels": {}}}
GPU = "gpu-0000-10-00-0"


class Node:
    """One node with cards of a machine, in all forms, and the claims that it holds."""

    def __init__(self, machine: str, count: int = 1) -> None:
        cards = tuple(divisible(n, memory_bytes=24 * 2**30) for n in range(count))
        self.profiles = profiles(machine)
        self.slices = [
            {**each, "metadata": {"name": f"{at:05}-s"}}
            for at, each in enumerate(
                render(
                    Inventory(gpus=cards),
                    node=NODE,
                    driver=DRIVER,
                    wishes=Wishes(tuple(Form), enforcement=HAMI),
                    divisions={address(n): division(machine, n) for n in range(count)},
                )
            )
        ]
        self.claims: list[Object] = []

    def give(self, *requests: Object, constraints: tuple[Object, ...] = ()) -> tuple[str, ...]:
        """The devices that a claim with these requests gets and keeps; none where it waits."""
        number = len(self.claims)
        devices = {"requests": list(requests), "constraints": list(constraints)}
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": f"c{number}", "namespace": "a", "uid": f"u{number}"},
            "spec": {"devices": devices},
        }
        answer = allocate(
            [claim],
            classes=CLASSES.values(),
            slices=self.slices,
            allocated_claims=self.claims,
            node=NODE_OBJECT,
        )
        if not isinstance(answer, Allocated):
            return ()
        (allocation,) = answer.allocations
        self.claims.append({**claim, "status": {"allocation": allocation}})
        return tuple(result["device"] for result in allocation["devices"]["results"])

    def take_back(self, position: int) -> None:
        del self.claims[position]

    @property
    def results(self) -> list[Object]:
        return [
            result
            for claim in self.claims
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]


def whole() -> Object:
    return {"name": "g", "exactly": {"deviceClassName": "gpu.dragoon.dev", "count": 1}}


def mig(profile: str, name: str = "m") -> Object:
    expression = f'device.attributes["{DRIVER}"].?profile.orValue("") == "{profile}"'
    selectors = [{"cel": {"expression": expression}}]
    return {
        "name": name,
        "exactly": {"deviceClassName": "mig.dragoon.dev", "count": 1, "selectors": selectors},
    }


def share(**capacity: str) -> Object:
    exactly: Object = {"deviceClassName": "shared.dragoon.dev", "count": 1}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    return {"name": "s", "exactly": exactly}


def test_a_gpu_is_given_away_in_one_form_at_a_time() -> None:
    node = Node("dgx-h100")
    assert node.give(share(memory="1Gi")) == (f"{GPU}-shared",)
    assert node.give(share(memory="1Gi")) == (f"{GPU}-shared",)
    assert node.give(whole()) == ()
    assert node.give(mig("1g.10gb")) == ()
    node.take_back(0)
    assert node.give(whole()) == ()
    node.take_back(0)
    assert node.give(mig("3g.40gb")) == (f"{GPU}-mig-3g40gb-4",)
    assert node.give(mig("4g.40gb")) == (f"{GPU}-mig-4g40gb-0",)
    assert node.give(share()) == ()
    assert node.give(whole()) == ()
    node.claims.clear()
    assert node.give(whole()) == (GPU,)
    assert node.give(share()) == ()


def test_c26_a_share_without_a_size_is_the_whole_card() -> None:
    node = Node("dgx-h100")
    assert node.give(share())
    assert node.results[0]["consumedCapacity"] == {"memory": "24Gi", "cores": "0"}
    assert node.give(share(memory="512Mi")) == ()
    node.claims.clear()
    assert node.give(share(memory="4Gi"))
    assert node.give(share()) == ()


def test_c26_m05_memory_and_cores_of_shares_are_summed() -> None:
    node = Node("dgx-h100")
    fitting = [node.give(share(memory="4Gi", cores="25")) for _ in range(6)]
    assert [bool(given_) for given_ in fitting] == [True] * 4 + [False] * 2
    assert len({result["shareID"] for result in node.results}) == 4
    node.claims.clear()
    assert [bool(node.give(share(memory="4Gi"))) for _ in range(7)] == [True] * 6 + [False]


@pytest.mark.parametrize(
    ("asked", "taken"), [("100Mi", "512Mi"), ("513Mi", "513Mi"), ("1073741825", "1025Mi")]
)
def test_sizes_of_shares_are_rounded_up_to_what_is_allowed(asked: str, taken: str) -> None:
    node = Node("dgx-h100")
    assert node.give(share(memory=asked))
    assert node.results[0]["consumedCapacity"]["memory"] == taken


def test_c17_c19_m04_four_slices_of_one_card() -> None:
    node = Node("dgx-a100-40gb", 2)
    same = {"requests": [], "matchAttribute": f"{DRIVER}/parentUUID"}
    got = node.give(
        mig("1g.5gb", "a"),
        mig("1g.5gb", "b"),
        mig("2g.10gb", "c"),
        mig("3g.20gb", "d"),
        constraints=(same,),
    )
    assert f"{GPU}-mig-3g20gb-4" in got
    assert len(got) == 4


def test_c19_seven_of_the_smallest_fit_and_no_eighth() -> None:
    node = Node("dgx-a100-40gb")
    assert all(node.give(mig("1g.5gb")) for _ in range(7))
    assert node.give(mig("1g.5gb")) == ()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_c19_whatever_arrives_and_leaves_the_card_can_make_it(data: st.DataObject) -> None:
    node = Node(data.draw(st.sampled_from(["dgx-a100-40gb", "a30-2way"])))
    wanted = st.sampled_from([whole(), share(memory="6Gi"), *(mig(p.name) for p in node.profiles)])
    places = {
        f"{GPU}-mig-{p.name.replace('.', '')}-{place.start}": (p, place)
        for p in node.profiles
        for place in p.placements
    }
    for _ in range(12):
        leaves = data.draw(st.booleans())
        if node.claims and leaves:
            node.take_back(data.draw(st.integers(0, len(node.claims) - 1)))
        else:
            node.give(data.draw(wanted))
        held = [result["device"] for result in node.results]
        forms = {"mig" if name in places else name for name in held}
        assert len(forms) <= 1
        assert possible(node.profiles, [places[name] for name in held if name in places])
