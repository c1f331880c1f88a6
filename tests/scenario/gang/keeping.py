"""Devices that are kept for a gang: what tests look at."""

from collections.abc import Mapping
from typing import Any

from dragoon.api.gang import GangObject
from tests.scenario.gang.bed import Bed
from tests.scenario.pluginbed import until

AT_ONCE: Mapping[str, Any] = {"reserve_after_seconds": 0.0}


async def reserved(bed: Bed, name: str) -> GangObject:
    """Waits until devices are kept for a gang, and fenced."""
    seen: list[GangObject] = []

    async def is_kept() -> bool:
        found = await bed.see(name)
        if found is None or found.status.reservation is None:
            return False
        seen[:] = [found]
        pools = {one.pool for one in found.status.reservation.pools}
        return pools <= await fenced(bed, name) and found.status.condition("Reserved") is not None

    await until(f"devices are kept for {name}", is_kept)
    return seen[0]


async def fenced(bed: Bed, name: str) -> set[str]:
    """The pools that are fenced for a gang."""
    return {
        rule["spec"]["deviceSelector"]["pool"]
        for rule in await bed.rules()
        if rule["metadata"]["labels"]["dragoon.dev/gang"] == name
    }


async def singles(bed: Bed, *names: str, **more: Any) -> None:
    """Gangs of one pod with one GPU each."""
    for name in names:
        await bed.pod(f"{name}-0", gang=name, size="1", **more)


async def nothing_kept(bed: Bed, name: str) -> bool:
    found = await bed.see(name)
    return found is None or found.status.reservation is None
