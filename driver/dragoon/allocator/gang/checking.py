"""What is wrong with an ask itself, before any node is looked at."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dragoon.allocator.gang.model import GangAsk, PlacementSnapshot, PodAsk, Refused
from dragoon.allocator.gang.shapes import is_pending, uid_of
from dragoon.api.names import CLASS_GPU

_RESERVED_FOR: Final = 256
"""Pods that can use one claim (resource.k8s.io/v1 ResourceClaimReservedForMaxSize)."""
_DEVICE_PLUGIN: Final = "nvidia.com/gpu"
"""What NVIDIA's device plugin offers: where no node has it, a GPU is meant."""


def refusal(snapshot: PlacementSnapshot, ask: GangAsk) -> Refused | None:
    """Why the ask cannot be planned as it is, None if it can."""
    for message in (*_sizes(ask), *_members(ask), *_claims(ask)):
        return Refused(message)
    for member in ask.members:
        for resource, amount in member.requests.items():
            class_name = _class_of(resource, snapshot)
            if class_name and amount > 0:
                return _extended(member, resource, amount, class_name)
    return None


def _sizes(ask: GangAsk) -> Iterator[str]:
    if ask.minimum < 1:
        yield f"size: found {ask.minimum}, allowed is a number from 1"
    elif 0 < ask.maximum < ask.minimum:
        yield f"largest size: found {ask.maximum}, allowed is a number from the size {ask.minimum}"
    elif len(ask.members) < ask.minimum:
        yield f"{len(ask.members)} of {ask.minimum} members are there"


def _members(ask: GangAsk) -> Iterator[str]:
    for uid, count in Counter(one.uid for one in ask.members).items():
        if count > 1:
            yield f"pod UID {uid!r} is there {count} times"
    for what, found in (
        ("namespace", {one.namespace for one in ask.members}),
        ("schedulerName", {one.scheduler for one in ask.members}),
    ):
        if len(found) > 1:
            yield f"{what}: members have {', '.join(sorted(found))}, allowed is one for all of them"


def _claims(ask: GangAsk) -> Iterator[str]:
    users: Counter[str] = Counter()
    for member in ask.members:
        for claim in member.claims:
            uid = uid_of(claim)
            if not uid:
                yield f"pod {member}: claim {claim['metadata'].get('name')} has no UID"
            users[uid] += is_pending(claim)
    for uid, count in users.items():
        if count > _RESERVED_FOR:
            yield f"claim {uid}: {count} members share it, allowed are {_RESERVED_FOR}"


def _class_of(resource: str, snapshot: PlacementSnapshot) -> str:
    """The DeviceClass that an extended resource stands for, empty if it stands for none."""
    if resource in snapshot.extended:
        return snapshot.extended[resource]
    if resource == _DEVICE_PLUGIN and not any(
        node.allocatable.get(resource) for node in snapshot.nodes
    ):
        return CLASS_GPU
    return ""


def _extended(member: PodAsk, resource: str, amount: int, class_name: str) -> Refused:
    """kube-scheduler makes such a claim itself, when the pod is no longer gated (KEP-5004)."""
    name = f"{member.name}-devices"
    return Refused(
        f"pod {member} asks for {amount} {resource}: such a claim exists only after scheduling, so "
        "it cannot be part of a gang; ask with a claim template instead",
        f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: {name}
  namespace: {member.namespace}
spec:
  spec:
    devices:
      requests:
      - name: devices
        exactly:
          deviceClassName: {class_name}
          count: {amount}
# In the pod, in place of {resource}:
# spec:
#   resourceClaims:
#   - name: devices
#     resourceClaimTemplateName: {name}
#   containers:
#   - resources:
#       claims:
#       - name: devices
""",
    )
