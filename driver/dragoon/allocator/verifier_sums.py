"""The verifier's sums: nobody gets what somebody has, and capacities and counters are enough."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoon import quantity
from dragoon.allocator.verifier_world import Raw, Spot, World, name_of
from dragoon.quantity import ZERO, Quantity


class _Given(NamedTuple):
    """A result with its place: which claim of the pod, and which request."""

    claim: int
    result: Raw
    request: Raw


def allocated(claims: Iterable[Raw]) -> Iterator[Raw]:
    """All results that other claims hold; admin access holds nothing."""
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if not result.get("adminAccess"):
                yield result


def sums(
    world: World, claims: Sequence[Raw], allocations: Sequence[Raw], held: Sequence[Raw]
) -> Iterator[str]:
    """What is wrong with the allocations taken together, and with what others hold."""
    given = [
        _Given(index, result, _request(claim, result["request"]))
        for index, (claim, allocation) in enumerate(zip(claims, allocations, strict=True))
        for result in allocation["devices"]["results"]
    ]
    yield from _whole_devices(given, held, world)
    yield from _shares(given, held, world)
    yield from _counters(given, held, world)


def _request(claim: Raw, name: str) -> Raw:
    base, _, sub = name.partition("/")
    for request in claim["spec"]["devices"]["requests"]:
        if request["name"] == base:
            if not sub:
                return request.get("exactly") or {}
            return next(
                (one for one in request.get("firstAvailable") or () if one["name"] == sub), {}
            )
    return {}


def _is_shared(world: World, result: Raw) -> bool:
    spot = world.find(result)
    return spot is not None and bool(spot.device.get("allowMultipleAllocations"))


def _whole_devices(given: Sequence[_Given], held: Sequence[Raw], world: World) -> Iterator[str]:
    """A whole device once in a pod; admin access again, but in another claim and afterwards."""
    whole = {name_of(one) for one in held if not one.get("shareID")}
    before: dict[str, set[int]] = defaultdict(set)
    for index, result, _ in given:
        name, admin = name_of(result), bool(result.get("adminAccess"))
        if not admin and name in whole:
            yield f"device {name} is given twice: another claim has it"
        if _is_shared(world, result):
            continue
        if index in before[name] or (before[name] and not admin):
            yield f"device {name} is given twice"
        before[name].add(index)


def _shares(given: Sequence[_Given], held: Sequence[Raw], world: World) -> Iterator[str]:
    used: dict[tuple[str, str], Quantity] = defaultdict(lambda: ZERO)
    ids = [one["shareID"] for one in held if one.get("shareID")]
    for result in held:
        for name, amount in (result.get("consumedCapacity") or {}).items():
            if result.get("shareID"):
                used[name_of(result), name] += quantity.parse(str(amount))
    seen: set[tuple[int, str, str]] = set()
    for index, result, request in given:
        spot = world.find(result)
        if spot is None:
            continue
        consumed, share = result.get("consumedCapacity") or {}, result.get("shareID")
        if not spot.device.get("allowMultipleAllocations"):
            if share or consumed:
                yield f"device {spot.name} cannot be shared, and has a share"
            continue
        if not share or share in ids:
            yield f"device {spot.name}: the share ID {share!r} is not fresh"
        ids.append(share)
        if (index, result["request"], spot.name) in seen:
            yield f"request {result['request']} has device {spot.name} twice"
        seen.add((index, result["request"], spot.name))
        yield from _amounts(spot, request, consumed)
        for name, amount in consumed.items():
            used[spot.name, name] += quantity.parse(str(amount))
            limit = quantity.parse(str(spot.device["capacity"].get(name, {}).get("value", "0")))
            if used[spot.name, name] > limit:
                yield f"device {spot.name}: {name} is {used[spot.name, name]} of {limit}"


def lacking(request: Raw, spot: Spot) -> Iterator[str]:
    """Capacities asked for that the device does not have, by the very key, or never so much of.

    What is not asked for is taken by default, and that may be more than there is too.
    """
    wanted = (request.get("capacity") or {}).get("requests") or {}
    for name, capacity in (spot.device.get("capacity") or {}).items():
        default = (capacity.get("requestPolicy") or {}).get("default")
        if default and name not in wanted:
            least = quantity.parse(str(default))
            if least > quantity.parse(str(capacity["value"])):
                yield f"device {spot.name}: {name} is {capacity['value']}, by default {default}"
    for name, text in wanted.items():
        capacity = (spot.device.get("capacity") or {}).get(name)
        if capacity is None:
            yield f"device {spot.name} has no capacity {name}"
            continue
        enough = _least(quantity.parse(str(text)), capacity.get("requestPolicy") or {})
        if enough is None or enough > quantity.parse(str(capacity["value"])):
            yield f"device {spot.name}: {name} is {capacity['value']}, wanted is {text}"


def _amounts(spot: Spot, request: Raw, consumed: Raw) -> Iterator[str]:
    """Every capacity is consumed: what is asked for, or the default, as the policy rounds it."""
    capacities = spot.device.get("capacity") or {}
    if set(consumed) != set(capacities):
        yield f"device {spot.name}: consumes {sorted(consumed)}, not {sorted(capacities)}"
        return
    wanted = (request.get("capacity") or {}).get("requests") or {}
    for name, capacity in capacities.items():
        policy = capacity.get("requestPolicy") or {}
        amount = quantity.parse(str(consumed[name]))
        if name not in wanted:
            expected = quantity.parse(str(policy.get("default") or capacity["value"]))
            if amount != expected:
                yield f"device {spot.name}: {name} is {amount}, by default {expected}"
        elif amount != _least(quantity.parse(str(wanted[name])), policy):
            yield f"device {spot.name}: {name} is {amount}, wanted is {wanted[name]}"


def _least(wanted: Quantity, policy: Raw) -> Quantity | None:
    """The least amount that the policy allows and that is not below the wish, None without one."""
    values = [quantity.parse(str(one)) for one in policy.get("validValues") or ()]
    if values:
        return next((value for value in values if value >= wanted), None)
    limits = policy.get("validRange") or {}
    if not limits:
        return wanted
    amount = least = quantity.parse(str(limits["min"]))
    if wanted > least:
        amount = wanted
        if limits.get("step"):
            step = quantity.parse(str(limits["step"]))
            scale = min(wanted.scale, least.scale, step.scale)
            start, size = _scaled(least, scale), _scaled(step, scale)
            steps = -((start - _scaled(wanted, scale)) // size)
            amount = Quantity(start + steps * size, scale)
    most = limits.get("max")
    return None if most and amount > quantity.parse(str(most)) else amount


def _scaled(amount: Quantity, scale: int) -> int:
    return int(amount.unscaled * 10 ** (amount.scale - scale))


def _counters(given: Sequence[_Given], held: Sequence[Raw], world: World) -> Iterator[str]:
    """In every pool of which a device with counters is newly charged, no counter is below zero."""
    in_use = {name_of(one) for one in held}
    charged: dict[tuple[str, str], list[Spot]] = defaultdict(list)
    shared = set(in_use)
    for one in given:
        spot = world.find(one.result)
        if spot is None or not spot.device.get("consumesCounters"):
            continue
        if spot.device.get("allowMultipleAllocations") and spot.name in shared:
            continue
        shared.add(spot.name)
        charged[spot.pool].append(spot)
    for pool, new in charged.items():
        old = (spot for spot in world.of_pool(pool) if spot.name in in_use)
        for (set_name, name), rest in sorted(_left(pool, (*old, *new), world).items()):
            if rest < ZERO:
                yield f"counter {name} of {set_name} in pool {'/'.join(pool)} is at {rest}"


def _left(
    pool: tuple[str, str], spots: Iterable[Spot], world: World
) -> dict[tuple[str, str], Quantity]:
    """What these devices leave of each counter; one that is not there is at less than nothing."""
    left: dict[tuple[str, str], Quantity] = {
        (one["name"], name): quantity.parse(str(counter["value"]))
        for slice_ in world.slices_of(pool)
        for one in slice_["spec"].get("sharedCounters") or ()
        for name, counter in one["counters"].items()
    }
    for spot in spots:
        for use in spot.device.get("consumesCounters") or ():
            for name, amount in use["counters"].items():
                key = use["counterSet"], name
                left[key] = left.get(key, ZERO) - quantity.parse(str(amount["value"]))
    return left
