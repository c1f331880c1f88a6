"""The rule on a pool with a device that was given twice. Pure.

kube-scheduler's memory of such a device is wrong from the first overlap until it restarts: when any
holder lets go, the device is free for it. So the rule comes before anybody lets go, and stays until
every holder has.
"""

from collections.abc import Iterable, Mapping

from dragoon.allocator.contention import Contention
from dragoon.allocator.model import PoolId
from dragoon.gang.protocol.actions import Action, AmendRule, CreateRule
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import ClaimFacts, Kind, Ref, RuleFacts
from dragoon.gang.protocol.objects import rule_name


def guards(
    found: Iterable[Contention],
    rules: Iterable[RuleFacts],
    claims: Mapping[tuple[str, str], ClaimFacts],
) -> tuple[Action, ...]:
    """The rules to create or amend, so that each pool is guarded until these holders are gone."""
    holders: dict[PoolId, dict[Ref, None]] = {}
    for one in found:
        facts = (claims.get(claim_key(name)) for name in one.claims)
        refs = (claim.ref._replace(version="") for claim in facts if claim is not None)
        holders.setdefault(one.pool, {}).update(dict.fromkeys(refs))
    have = {PoolId(rule.driver, rule.pool): rule for rule in rules if rule.kind is Kind.DAMAGE}
    actions = (_guard(pool, tuple(refs), have.get(pool)) for pool, refs in holders.items())
    return tuple(action for action in actions if action is not None)


def _guard(pool: PoolId, holders: tuple[Ref, ...], rule: RuleFacts | None) -> Action | None:
    if rule is None:
        name = rule_name(Kind.DAMAGE, pool.driver, pool.pool)
        return CreateRule(name, Kind.DAMAGE, pool.driver, pool.pool, claims=holders)
    if set(holders) <= set(rule.claims):
        return None
    return AmendRule(rule.ref, tuple(dict.fromkeys((*rule.claims, *holders))))
