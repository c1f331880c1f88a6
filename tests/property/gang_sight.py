"""What the pilot of a gang sees of the small cluster, and what it plans from that."""

from dataclasses import dataclass
from typing import Any

from dragoon.allocator import ClusterState, Snapshot
from dragoon.api.gang_plan import PlannedClaim, PlannedMember, PlannedPool
from dragoon.api.names import DRIVER_NAME
from dragoon.gang.protocol.actions import RequestPlan
from dragoon.gang.protocol.model import Proposal, RuleFacts
from dragoon.gang.protocol.objects import rule_facts
from dragoon.gang.protocol.viewing import ref
from dragoon.kube.port import CLAIMS, NODES, PODS, SLICES, TAINT_RULES
from tests.property.gang_cluster import NAMESPACE
from tests.property.gang_scheduler import (
    Raw,
    allocation_of,
    claims_of,
    cpu_left,
    devices_of,
    pinned_to,
)


@dataclass
class Seen:
    """What the informers show: raw objects of each kind."""

    items: dict[Any, list[Raw]]

    def claim(self, namespace: str, name: str) -> Raw | None:
        return next((one for one in self.items[CLAIMS] if ref(one)[:2] == (namespace, name)), None)

    @property
    def rules(self) -> list[RuleFacts]:
        facts = (rule_facts(raw) for raw in self.items[TAINT_RULES])
        return [one for one in facts if one is not None]

    def snapshot(self) -> Snapshot:
        state = ClusterState()
        for raw in self.items[SLICES]:
            state.put_slice(raw)
        for raw in self.items[CLAIMS]:
            state.put_claim(raw)
        for raw in self.items[TAINT_RULES]:
            state.put_rule(raw)
        return state.snapshot()


def pending(seen: Seen) -> frozenset[str]:
    """Unallocated claims of pods that kube-scheduler may schedule."""
    names = {
        name
        for pod in seen.items[PODS]
        if not pod["spec"].get("schedulingGates")
        and not pod["spec"].get("nodeName")
        and pod["status"]["phase"] == "Pending"
        for name in claims_of(pod)
    }
    return frozenset(
        claim["metadata"]["uid"]
        for claim in seen.items[CLAIMS]
        if claim["metadata"]["name"] in names and not devices_of(claim)
    )


def misfits(seen: Seen, members: tuple[PlannedMember, ...]) -> dict[str, str]:
    """Planned pods for whose CPU their node has no room any more."""
    nodes = {node["metadata"]["name"]: node for node in seen.items[NODES]}
    pods = {pod["metadata"]["uid"]: pod for pod in seen.items[PODS]}
    found = {}
    for member in members:
        pod, node = pods.get(member.uid), nodes.get(member.node)
        if pod is None or node is None:
            continue
        if cpu_left(node, seen.items[PODS], member.uid) < pod["spec"]["cpu"]:
            found[member.uid] = "no CPU"
    return found


def plan(seen: Seen, request: RequestPlan) -> Proposal:
    """A planner: first fit over nodes and free devices, all pods or none."""
    asked = frozenset(request.pods)
    by_uid = {pod["metadata"]["uid"]: pod for pod in seen.items[PODS]}
    if not asked <= set(by_uid):
        return Proposal(asked, refusal="a pod is gone")
    taken = set().union(*map(devices_of, seen.items[CLAIMS])) if seen.items[CLAIMS] else set()
    fenced = {rule.pool for rule in seen.rules if rule.kind == "damage"}
    free = {
        one["spec"]["nodeName"]: [
            (one["spec"]["pool"]["name"], device["name"])
            for device in one["spec"]["devices"]
            if (one["spec"]["pool"]["name"], device["name"]) not in taken
            and one["spec"]["pool"]["name"] not in fenced
        ]
        for one in seen.items[SLICES]
    }
    room = {
        node["metadata"]["name"]: cpu_left(
            node, [pod for pod in seen.items[PODS] if pod["metadata"]["uid"] not in asked], ""
        )
        for node in seen.items[NODES]
    }
    members, claims = [], []
    for uid in request.pods:
        pod = by_uid[uid]
        claim = seen.claim(NAMESPACE, claims_of(pod)[0])
        assert claim is not None
        count = pod["spec"]["gpus"]
        node = next(
            (
                name
                for name in sorted(room)
                if len(free.get(name, ())) >= count
                and room[name] >= pod["spec"]["cpu"]
                and not (request.spare and name in pinned_to(pod))
                and pod["spec"].get("nodeName") in {None, name}
            ),
            None,
        )
        if node is None:
            return Proposal(asked, refusal="no room")
        chosen, free[node] = free[node][:count], free[node][count:]
        room[node] -= pod["spec"]["cpu"]
        name = claim["metadata"]["name"]
        claims.append(
            PlannedClaim(
                name=name,
                uid=claim["metadata"]["uid"],
                allocation={
                    key: value
                    for key, value in allocation_of(node, chosen).items()
                    if key != "allocationTimestamp"
                },
            )
        )
        members.append(
            PlannedMember(pod=pod["metadata"]["name"], uid=uid, node=node, claims=(name,))
        )
    pools = {
        result
        for claim in claims
        for result in devices_of({"status": {"allocation": claim.allocation}})
    }
    return Proposal(
        asked,
        members=tuple(members),
        claims=tuple(claims),
        pools=tuple(
            PlannedPool(driver=DRIVER_NAME, pool=pool)
            for pool in sorted({pool for pool, _ in pools})
        ),
    )
