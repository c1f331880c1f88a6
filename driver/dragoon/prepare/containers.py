"""Which containers of a pod see which GPUs, and how much of them: pure.

Containers name claims, or one request of a claim; the kubelet gives them the devices of those. What
a container may use of a card is the sum of what its claims have of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoon.api.claims import AllocatedDevice
from dragoon.api.forms import Form
from dragoon.api.opaque_config import Priority
from dragoon.gpu.model import Gpu, Inventory, PciAddress
from dragoon.prepare import shares
from dragoon.prepare.enforcement.errors import UnenforceableError
from dragoon.prepare.enforcement.tier import Container, Limit, Pod
from dragoon.prepare.given import Given, form_of
from dragoon.prepare.locating import locate
from dragoon.prepare.pods import PodLook, named_claims
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.shares import CORES, Amount

_Seen = tuple[Given, AllocatedDevice]


@dataclass(frozen=True, slots=True)
class Seating:
    """The pod, and the containers that see each of its shares, beside what else they see."""

    pod: Pod
    seats: Mapping[_Seen, tuple[Container, ...]]

    def container(self, claim: Given, result: AllocatedDevice) -> Container | None:
        """The one container that sees a share, None for none.

        Raises UnenforceableError for two: each has processes of its own that count from one, so
        they cannot keep count together (enforcement.md section 1.3).
        """
        seen_by = self.seats.get((claim, result), ())
        if len(seen_by) > 1:
            names = " and ".join(one.name for one in seen_by)
            raise UnenforceableError(
                f"claim {claim.ref}: request {result.request} is used by the containers {names}: "
                "one share cannot be limited in two containers",
                hint="give each container a request of its own",
            )
        return seen_by[0] if seen_by else None


def seating(look: PodLook, inventory: Inventory, settings: PrepareSettings) -> Seating:
    """Works out what every container of a pod sees that has a share.

    Raises UnenforceableError for a container with a share beside a MIG instance, and what
    `locate` and `shares.amount` raise.
    """
    cards = _Cards(inventory, settings)
    seats: dict[_Seen, list[Container]] = {}
    containers = []
    for raw in _containers(look.pod):
        seen = tuple(dict.fromkeys(_seen(raw, look)))
        if any(result in claim.shares for claim, result in seen):
            container = _container(raw, seen, cards)
            containers.append(container)
            for one in seen:
                seats.setdefault(one, []).append(container)
    pod = Pod(look.pod["metadata"]["uid"], _memory(look, cards), tuple(containers))
    return Seating(pod, {one: tuple(found) for one, found in seats.items()})


@dataclass(frozen=True, slots=True)
class _Cards:
    inventory: Inventory
    settings: PrepareSettings

    def of(self, seen: _Seen) -> Gpu:
        claim, result = seen
        return locate(claim.ref, result, self.inventory, self.settings)

    def amount(self, seen: _Seen) -> Amount:
        """How much of its card a device is: all of it unless it is a share."""
        claim, result = seen
        gpu = self.of(seen)
        if result in claim.shares:
            return shares.amount(claim.ref, result, gpu, self.settings.driver)
        if gpu.memory_bytes is None:
            raise UnenforceableError(
                f"claim {claim.ref}: {result.device} does not say how much memory it has, so it "
                "cannot stand beside a share in one container"
            )
        return Amount(gpu.memory_bytes, 0)


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All that may name claims; ephemeral containers may not."""
    for field in ("initContainers", "containers"):
        yield from pod["spec"].get(field) or ()


def _seen(container: Mapping[str, Any], look: PodLook) -> Iterator[_Seen]:
    for claim, request in named_claims(look.pod, container):
        yield from _of_request(look.claims.get(claim), request)


def _of_request(claim: Given | None, request: str | None) -> Iterator[_Seen]:
    for result in claim.devices if claim else ():
        if claim is not None and request in {None, result.base_request}:
            yield claim, result


def _container(raw: Mapping[str, Any], seen: Sequence[_Seen], cards: _Cards) -> Container:
    forms = {form_of(result.device) for _, result in seen}
    if forms >= {Form.SHARED, Form.MIG}:
        refs = " and ".join(sorted({str(claim.ref) for claim, _ in seen}))
        raise UnenforceableError(
            f"container {raw['name']}: it has a share and a MIG instance ({refs}): CUDA would see "
            "the instance alone",
            hint="put them into two containers",
        )
    whole = [one for one in seen if form_of(one[1].device) is not Form.MIG]
    return Container(
        name=raw["name"],
        limits=tuple(_limits(whole, cards)),
        variables=frozenset(one["name"] for one in raw.get("env") or ()),
        priority=_priority(seen),
    )


def _limits(seen: Iterable[_Seen], cards: _Cards) -> Iterator[Limit]:
    """One for each card, by PCI address."""
    by_card: dict[PciAddress, list[_Seen]] = {}
    for one in seen:
        by_card.setdefault(cards.of(one).address, []).append(one)
    for address in sorted(by_card):
        amounts = [cards.amount(one) for one in by_card[address]]
        gpu = cards.of(by_card[address][0])
        # Admin access sees all of a card of which the container has a share too.
        memory = min(sum(one.memory for one in amounts), gpu.memory_bytes or 0)
        # A share without a ceiling is one: the ceilings of the others do not bind it.
        cores = 0 if any(not one.cores for one in amounts) else sum(one.cores for one in amounts)
        yield Limit(gpu, memory, min(cores, CORES))


def _memory(look: PodLook, cards: _Cards) -> dict[PciAddress, int]:
    """What the pod's shares have of each card together, never more than there is."""
    found: dict[PciAddress, int] = {}
    for claim in look.claims.values():
        for result in claim.shares:
            gpu = cards.of((claim, result))
            memory = found.get(gpu.address, 0) + cards.amount((claim, result)).memory
            found[gpu.address] = min(memory, gpu.memory_bytes or 0)
    return found


def _priority(seen: Iterable[_Seen]) -> Priority:
    """A process has one: the highest that any of its shares asks for."""
    asked = {claim.share_config(result).priority for claim, result in seen}
    return Priority.HIGH if Priority.HIGH in asked else Priority.LOW
