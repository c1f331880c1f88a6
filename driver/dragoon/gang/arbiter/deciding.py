"""What is done about devices that were given twice. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from dragoon.allocator.contention import Contention
from dragoon.gang.arbiter.ranking import Holder, User, ranked
from dragoon.gang.protocol.actions import Action, Evict, Mark, Note
from dragoon.gang.protocol.damage import guards
from dragoon.gang.protocol.model import ClaimFacts, RuleFacts


def arbitrate(
    found: Sequence[Contention],
    rules: Iterable[RuleFacts],
    claims: Mapping[tuple[str, str], ClaimFacts],
    holders: Mapping[str, Holder],
) -> tuple[Action, ...]:
    """First the rules; when they stand, the losers are evicted, or marked where nobody owns them.

    holders: the contended claims by `namespace/name`.
    """
    rules_first = guards(found, rules, claims)
    if rules_first:
        return rules_first
    actions: list[Action] = []
    for one in found:
        there = ranked(holders[name] for name in one.claims if name in holders)
        for loser in _losers(one, there):
            actions += _against(loser, one, there[0])
    return tuple(dict.fromkeys(actions))


def _losers(found: Contention, there: Sequence[Holder]) -> Sequence[Holder]:
    """All but the winner of a whole device; of what is divided the last, then it is looked again.

    How much must go where amounts add up is known only when somebody has gone.
    """
    whole = found.devices == (found.what,)
    return there[1:] if whole else there[-1:] if len(there) > 1 else ()


def _against(loser: Holder, found: Contention, winner: Holder) -> Iterable[Action]:
    """A gang that is being placed takes its allocation back by itself."""
    if loser.is_waiting:
        return
    why = f"{found.pool} {found.what} was given to claim {winner.ref} too, which keeps it"
    if not loser.users:
        yield Note("GivenTwice", f"claim {loser.ref}: {why}; no pod uses it: delete the claim")
    for user in loser.users:
        yield from _about(user, why)


def _about(user: User, why: str) -> Iterable[Action]:
    if user.deleting or user.gated:
        return
    if user.owner is not None:
        yield Evict(user.ref, why)
        return
    if not user.marked:
        yield Mark(user.ref, why)
    text = f"pod {user.ref}: {why}; it has no owner that would make it again: delete it"
    yield Note("GivenTwice", text, pod=user.ref)
