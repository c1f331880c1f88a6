"""What is left in the cluster when its owner is gone: rules, allocations, gates. Pure.

Rules are cluster-scoped, so a Gang cannot own them; nothing else of ours outlives a Gang. `release`
is for the end of everything: the command `gangs release` and the chart's pre-delete hook.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dragoon.allocator.model import PoolId
from dragoon.allocator.snapshot import Snapshot
from dragoon.gang.protocol.actions import Action, ClearAllocation, DeleteRule, Ungate
from dragoon.gang.protocol.facts import claim_key
from dragoon.gang.protocol.model import ClaimFacts, Kind, Member, Ref, RuleFacts


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is looked at: all rules of ours, and the rest of the cluster as far as it matters.

    gangs: UIDs of all Gangs there are. in_use: claims that a living pod without our gate names,
    by (namespace, name). claims: all. stray: claims made for gated pods that belong to no Gang.
    """

    rules: tuple[RuleFacts, ...]
    gangs: frozenset[str]
    claims: Mapping[tuple[str, str], ClaimFacts]
    in_use: frozenset[tuple[str, str]]
    snapshot: Snapshot
    stray: tuple[ClaimFacts, ...] = field(default=())


def sweep(found: Leftovers) -> tuple[Action, ...]:
    """Removes fences without a Gang, after what they were for, and damage that is over."""
    actions: list[Action] = [
        ClearAllocation(claim.ref)
        for claim in found.stray
        if claim.allocation is not None and not claim.reserved
    ]
    for rule in found.rules:
        if rule.kind is Kind.DAMAGE:
            if not _holders(rule, found):
                actions.append(DeleteRule(rule.ref))
        elif rule.gang not in found.gangs:
            clears = _unused(rule, found)
            actions += clears or [DeleteRule(rule.ref)]
    return tuple(dict.fromkeys(actions))


def _unused(rule: RuleFacts, found: Leftovers) -> list[ClearAllocation]:
    """Claims made by users that the gang allocated and no pod has come to use."""
    return [
        ClearAllocation(claim.ref)
        for named in rule.claims
        if (claim := _same(named, found.claims)) is not None
        and claim.allocation is not None
        and not claim.reserved
        and (named.namespace, named.name) not in found.in_use
    ]


def _same(named: Ref, claims: Mapping[tuple[str, str], ClaimFacts]) -> ClaimFacts | None:
    claim = claims.get((named.namespace, named.name))
    return claim if claim is not None and claim.ref.uid == named.uid else None


def _holders(rule: RuleFacts, found: Leftovers) -> set[str]:
    """The claims that held what was given twice and still hold anything of the pool.

    Until they are gone kube-scheduler's memory of the pool is wrong. A rule that names none was
    edited: it stays while anybody holds anything.
    """
    usage = found.snapshot.usage.get(PoolId(rule.driver, rule.pool))
    if usage is None:
        return set()
    holding = {
        hold.claim
        for held in (usage.exclusive, usage.shared)
        for holds in held.values()
        for hold in holds
    }
    if not rule.claims:
        return holding
    uids = {one.uid for one in rule.claims}
    return {
        label
        for label in holding
        if (claim := found.claims.get(claim_key(label))) is None or claim.ref.uid in uids
    }


def release(
    pods: Iterable[Member],
    claims: Mapping[tuple[str, str], ClaimFacts],
    rules: Iterable[RuleFacts],
) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """Gives gangs up: first every gate goes, then every rule. To be done one after the other.

    A pod whose claims are all allocated is pinned to their node; what was allocated stays, for a
    claim that is cleared under an ungated pod is allocated by kube-scheduler somewhere.
    """
    gates: tuple[Action, ...] = tuple(
        Ungate(pod.ref, _node(pod, claims), pod.other_gates, pod.affinity)
        for pod in pods
        if pod.gated
    )
    return gates, tuple(DeleteRule(rule.ref) for rule in rules)


def _node(pod: Member, claims: Mapping[tuple[str, str], ClaimFacts]) -> str:
    """The one node that the pod's allocated claims can be used on, empty where there is none."""
    nodes: set[str] = set()
    for name in pod.claims:
        claim = claims.get((pod.ref.namespace, name))
        if claim is None or claim.allocation is None:
            return ""
        terms = (claim.allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        for field_ in (one for term in terms for one in term.get("matchFields") or ()):
            nodes.update(field_.get("values") or ())
    return nodes.pop() if len(nodes) == 1 else ""
