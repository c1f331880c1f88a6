"""Which part of an offer an API server keeps as it is meant, as a dry run shows."""

from dataclasses import dataclass, replace

import structlog

from dragoon.publish import comparing, slices
from dragoon.publish.device import CounterSet, Device
from dragoon.publish.offer import Offer
from dragoon.publish.probing import Feature, Support
from dragoon.publish.reconciling import Target
from dragoon.publish.slices import Pool

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Keepable:
    """What is published of an offer.

    left_out: devices that are not, because the server would drop the taint that protects them.
    whole_only: it would drop what keeps other forms apart.
    """

    devices: tuple[Device, ...]
    counter_sets: tuple[CounterSet, ...] = ()
    left_out: tuple[str, ...] = ()
    whole_only: bool = False

    def tell(self, before: "Keepable") -> None:
        """Logs what is left out, where it was not left out before."""
        if self.left_out and self.left_out != before.left_out:
            log.warning(
                "devices are not published: this API server does not keep taints",
                devices=self.left_out,
                gate=comparing.GATES["taints"],
            )
        if self.whole_only and not before.whole_only:
            log.warning(
                "only whole GPUs are published: this API server does not keep what keeps forms apart",
                gates=(comparing.GATES["sharedCounters"], comparing.GATES["requestPolicy"]),
            )


async def keepable(support: Support, pool: Pool, offered: Offer) -> Keepable:
    """The part of an offer that the server keeps. Raises what the API raises."""
    devices, counter_sets = offered.devices, offered.counter_sets
    whole_only = offered.has_forms and not await _keeps_forms(support, pool, offered)
    if whole_only:
        devices, counter_sets = offered.plain, ()
    tainted = tuple(device for device in devices if device.taints)
    probe = slices.parts([replace(d, consumes=None) for d in tainted])[:1]
    if not tainted or await support.kept(Feature.TAINTS, Target(pool, probe).bodies()):
        return Keepable(devices, counter_sets, whole_only=whole_only)
    left = tuple(device for device in devices if not device.taints)
    return Keepable(left, counter_sets, tuple(d.name for d in tainted), whole_only=whole_only)


async def _keeps_forms(support: Support, pool: Pool, offered: Offer) -> bool:
    consuming = [device for device in offered.devices if device.consumes][:1]
    sharing = [device for device in offered.devices if device.shared][:1]
    chosen = {device.name: replace(device, taints=()) for device in (*consuming, *sharing)}
    sets = slices.parts((), offered.counter_sets)[:1] if offered.counter_sets else ()
    parts = (*sets, *slices.parts(tuple(chosen.values())))
    return await support.kept(Feature.FORMS, Target(pool, parts).bodies())
