"""Random gangs: kube-scheduler's allocator gives each member just what was planned for it.

It is asked claim by claim, with those before as holders, on pools in which every other device that
is free is missing: it can choose what was planned, or nothing.
"""

from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dragoon.allocator.gang import GangPlan, plan
from tests.oracle.go_oracle import Oracle
from tests.property.gang_scenes import Scene, random_scene
from tests.unit.allocator.gang.objects import CLASSES
from tests.unit.allocator.objects import Raw


@settings(settings.get_profile("oracle"))
@given(st.integers(0, 2**32))
def test_every_claim_could_have_had_its_devices_from_kubernetes(oracle: Oracle, seed: int) -> None:
    scene = random_scene(Random(seed))  # noqa: S311 - of cases, not of secrets
    numbers = count(1)
    ask = replace(scene.ask, minimum=1)  # The others come one by one, as many as fit.
    outcome = plan(scene.snapshot, ask, share_ids=lambda: f"share-{next(numbers)}")
    event(type(outcome).__name__)
    if not isinstance(outcome, GangPlan):
        return
    held = list(scene.holders)
    for one in outcome.placements:
        for claim in (dict(raw) for raw in one.pod.claims):
            planned = one.allocations.get(claim["metadata"]["uid"])
            if planned is None:
                continue
            given_ = {**claim, "status": {"allocation": planned}}
            answer = oracle.ask(
                "allocate",
                claims=[claim],
                classes=list(CLASSES),
                slices=only(scene, [*held, given_]),
                allocated=held,
                node={"metadata": {"name": one.node, "labels": labels(scene, one.node)}},
            )
            theirs = answer.get("allocations")
            assert theirs, (one.pod.name, answer)
            assert results(theirs[0]) == results(planned)
            held.append(given_)


def labels(scene: Scene, name: str) -> dict[str, str]:
    return next(dict(one.labels) for one in scene.snapshot.nodes if one.name == name)


def only(scene: Scene, holders: list[Raw]) -> list[Raw]:
    """The slices with the devices that somebody holds, and no others."""
    names = {
        (one["pool"], one["device"])
        for holder in holders
        for one in holder["status"]["allocation"]["devices"]["results"]
    }
    return [
        {
            **raw,
            "spec": {
                **raw["spec"],
                **(
                    {
                        "devices": [
                            one
                            for one in raw["spec"]["devices"]
                            if (raw["spec"]["pool"]["name"], one["name"]) in names
                        ]
                    }
                    if "devices" in raw["spec"]
                    else {}
                ),
            },
        }
        for raw in scene.slices
    ]


def results(allocation: Any) -> set[tuple[str, str, str]]:
    found = allocation["devices"]["results"]
    return {(one["request"], one["pool"], one["device"]) for one in found}
