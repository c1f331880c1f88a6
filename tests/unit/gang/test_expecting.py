"""The pods of the cluster are counted by what they ask for."""

from typing import Any

from dragoon.allocator.gang.mix import KINDS
from dragoon.gang.copies import Copies
from dragoon.gang.expecting import Expecting
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, Object
from tests.reachable import reachable


def claim(name: str, count: int = 1) -> Object:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"namespace": "team", "name": name},
        "spec": {"devices": {"requests": [{"name": "g", "exactly": exactly}]}},
    }


def pod(name: str, *claims: str) -> Object:
    resources = {"requests": {"cpu": "2"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "team", "name": name},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims],
        },
    }


class Bed:
    def __init__(self) -> None:
        self.api = MemoryApi()
        self.copies = Copies(self.api)
        self.expecting = Expecting(
            self.copies.pods, lambda namespace, name: self.copies.claims.get(name, namespace)
        )

    async def mix(self) -> list[tuple[int, int, Any]]:
        """Weight, devices and amounts of what was learned, after the copies caught up."""
        await self.copies.pods.refresh()
        await self.copies.claims.refresh()
        mix = self.expecting.mix()
        assert mix[len(mix) - len(KINDS) :] == KINDS
        learned = mix[: len(mix) - len(KINDS)]
        return [(one.weight, one.wish.count, one.amounts) for one in learned]


async def test_pods_count_once_their_claims_are_there_and_until_they_are_gone() -> None:
    bed = Bed()
    assert await bed.mix() == []
    await bed.api.create(PODS, pod("a", "one"))
    assert await bed.mix() == []
    await bed.api.create(CLAIMS, claim("one"))
    cpu = (("cpu", 2000),)
    assert await bed.mix() == [(8192, 1, cpu)]
    await bed.api.create(CLAIMS, claim("two", 2))
    await bed.api.create(PODS, pod("b", "two"))
    await bed.api.create(PODS, pod("c", "two"))
    await bed.api.create(PODS, pod("d"))
    assert await bed.mix() == [(5461, 2, cpu), (2731, 1, cpu)]
    await bed.api.delete(PODS, "b", namespace="team")
    await bed.api.delete(PODS, "c", namespace="team")
    assert await bed.mix() == [(8192, 1, cpu)]
    await bed.api.delete(PODS, "a", namespace="team")
    assert await bed.mix() == []


async def test_of_long_claims_that_came_and_went_little_is_remembered() -> None:
    bed, long = Bed(), {"x": "x" * 2_000_000}
    opaque = {"driver": "gpu", "parameters": long}
    for index in range(20):
        raw = claim(f"c-{index}", index + 1)
        raw["spec"]["devices"]["config"] = [{"opaque": opaque}]
        await bed.api.create(CLAIMS, raw)
        await bed.api.create(PODS, pod(f"p-{index}", f"c-{index}"))
        ((_, count, _),) = await bed.mix()
        assert count == index + 1
        await bed.api.delete(PODS, f"p-{index}", namespace="team")
        await bed.api.delete(CLAIMS, f"c-{index}", namespace="team")
    keys = (key for one in reachable(bed.expecting) if isinstance(one, dict) for key in [*one])
    assert 0 < sum(isinstance(key, str) and len(key) > 2_000_000 for key in keys) < 10
