"""What a publisher is given: devices, the counters they draw from, and what to do without those."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dragoon.api import names
from dragoon.api.counter_validation import check_counter_sets
from dragoon.api.finding import Finding
from dragoon.publish.device import CounterSet, Device, Taint
from dragoon.publish.devices import valid


@dataclass(frozen=True, slots=True)
class Offer:
    """The devices of a pool in their order.

    plain: what to publish instead where the server does not keep the fields that hold the forms of
    a card apart: then two claims would get one card.
    """

    devices: tuple[Device, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    plain: tuple[Device, ...] = ()

    @property
    def has_forms(self) -> bool:
        """Whether it depends on counters, or on devices that are given away several times."""
        return bool(self.counter_sets) or any(device.shared for device in self.devices)

    def usable(self) -> tuple["Offer", tuple[Finding, ...]]:
        """The offer as an API server and the allocator accept it, and what is wrong otherwise."""
        sets: list[CounterSet] = []
        findings: list[Finding] = []
        for one in self.counter_sets:
            wrong = tuple(check_counter_sets([one.raw()], f"sharedCounters[{one.name}]"))
            findings.extend(wrong)
            if not wrong:
                sets.append(one)
        known = {one.name for one in sets}
        devices, wrong_devices = valid(
            [d for d in self.devices if d.consumes is None or d.consumes.name in known]
        )
        plain, wrong_plain = valid(self.plain)
        told = dict.fromkeys((*findings, *wrong_devices, *wrong_plain))
        return Offer(devices, tuple(sets), plain), tuple(told)


def careful(
    devices: Sequence[Device], others: Sequence[Device], held: Collection[str]
) -> tuple[Device, ...]:
    """Whole GPUs, of which those are tainted that somebody holds in another form.

    others: what the cards were published as; held: names of devices that claims hold.
    """
    taint = Taint(names.TAINT_FORM_WITHDRAWN)
    busy = [other.name for other in others if other.name in held]
    return tuple(
        device.tainted(taint) if any(n.startswith(f"{device.name}-") for n in busy) else device
        for device in devices
    )
