"""A map of a snapshot.

Pure: gangs that wait are asked of the planner, as `dragoon explain` does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dragoon.api import gang as api
from dragoon.api.names import DRIVER_NAME, LABEL_GANG_ONLY
from dragoon.diagnose import installed
from dragoon.diagnose.cluster import Cluster, results
from dragoon.diagnose.explaining import Explained, explain_gang_in
from dragoon.diagnose.gangs import find_gang
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.mapping.cards import Held, attribute, bytes_of, cards_of, taint_text
from dragoon.diagnose.mapping.model import ClusterMap, GangLine, Holder, Node
from dragoon.diagnose.pods import has_ended
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import DragoonError
from dragoon.publish.attributes import FABRIC_CLIQUE, MEMORY

ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "topology.kubernetes.io/rack"
_PLANNED: Final = 20
"""Gangs of which the planner is asked again; of the others the controller's last word is shown."""
_NO_NODE: Final = "(every node)"


def draw(
    snapshot: ClusterSnapshot, *, driver: str = DRIVER_NAME, labels: Sequence[str] = ()
) -> ClusterMap:
    """The map of what one driver publishes. labels: node labels to group by, beside the usual."""
    cluster = Cluster(snapshot)
    pods = {identity(pod): pod for pod in snapshot.pods}
    nodes = tuple(_nodes(cluster.snapshot, driver, (ZONE, RACK, *labels)))
    return ClusterMap(
        source=snapshot.source,
        driver=driver,
        nodes=nodes,
        claims=tuple(_holders(cluster.snapshot, driver, pods)),
        gangs=tuple(_gangs(cluster)),
        waiting=tuple(_waiting(cluster.snapshot)),
        notes=(*snapshot.missing, *cluster.problems),
        counts=dict(Counter(card.state for node in nodes for card in node.cards)),
    )


def _nodes(snapshot: ClusterSnapshot, driver: str, labels: Sequence[str]) -> Iterator[Node]:
    pools = installed.pools_of(snapshot, driver)
    raw = {identity(node)[1]: node for node in snapshot.nodes}
    held, fences = _held(snapshot, driver), _fences(snapshot, driver)
    known = bool(raw)
    on: dict[str, list[str]] = {}
    for pool, slices in pools.items():
        name = next((text(mapping(one.get("spec")).get("nodeName")) for one in slices), "")
        on.setdefault(name or _NO_NODE, []).append(pool)
    for name in sorted(on):
        devices = [d for pool in on[name] for d in _devices(pools[pool])]
        taken = {key: value for pool in on[name] for key, value in held.get(pool, {}).items()}
        cards = cards_of(devices, taken)
        near = [one for pool in (*on[name], "") for one in fences.get(pool, ())]
        places = _places(raw.get(name), devices, labels, known=known)
        yield Node(name, cards, tuple(places), tuple(near))


def _devices(slices: Iterable[Raw]) -> list[Raw]:
    return [
        mapping(one)
        for slice_ in slices
        for one in listed(mapping(slice_.get("spec")).get("devices"))
    ]


def _places(
    node: Raw | None, devices: Sequence[Raw], labels: Sequence[str], *, known: bool
) -> Iterator[tuple[str, str]]:
    """What nodes are grouped by, with the value of this one; absent where it has none."""
    metadata, spec = mapping((node or {}).get("metadata")), mapping((node or {}).get("spec"))
    for label in labels:
        value = text(mapping(metadata.get("labels")).get(label))
        if value:
            yield label, value
    clique = next(filter(None, (attribute(one, FABRIC_CLIQUE) for one in devices)), "")
    if clique:
        yield "fabric clique", clique
    if mapping(metadata.get("labels")).get(LABEL_GANG_ONLY) == "true":
        yield "gang only", "true"
    yield "state", _state(node, spec, known=known)


def _state(node: Raw | None, spec: Raw, *, known: bool) -> str:
    if node is None:
        return "no such node" if known else "not known"
    if spec.get("unschedulable"):
        return "cordoned"
    taints = [taint_text(mapping(one)) for one in listed(spec.get("taints"))]
    return f"tainted {', '.join(taints)}" if taints else "schedulable"


def _fences(snapshot: ClusterSnapshot, driver: str) -> dict[str, list[str]]:
    """Rules that taint devices, as those of gangs do: by pool, under "" those of every pool."""
    found: dict[str, list[str]] = {}
    for rule in snapshot.taint_rules:
        spec = mapping(rule.get("spec"))
        selector = mapping(spec.get("deviceSelector"))
        if selector.get("driver", driver) == driver:
            device = text(selector.get("device"))
            words = f"{taint_text(mapping(spec.get('taint')))}{f' on {device}' if device else ''}"
            found.setdefault(text(selector.get("pool")), []).append(words)
    return found


def _held(snapshot: ClusterSnapshot, driver: str) -> dict[str, dict[str, list[Held]]]:
    """Who holds what: pool -> device -> claims. Results with admin access hold nothing."""
    found: dict[str, dict[str, list[Held]]] = {}
    for claim in snapshot.claims:
        name = "/".join(identity(claim))
        for result in results(claim):
            if result.get("driver") != driver or result.get("adminAccess"):
                continue
            consumed = mapping(result.get("consumedCapacity")).get(MEMORY)
            memory = 0 if consumed is None else bytes_of(consumed)
            devices = found.setdefault(text(result.get("pool")), {})
            devices.setdefault(text(result.get("device")), []).append(Held(name, memory))
    return found


def _holders(
    snapshot: ClusterSnapshot, driver: str, pods: Mapping[tuple[str, str], Raw]
) -> Iterator[Holder]:
    for claim in snapshot.claims:
        if any(result.get("driver") == driver for result in results(claim)):
            namespace, name = identity(claim)
            users = [
                text(one.get("name"))
                for one in map(mapping, listed(mapping(claim.get("status")).get("reservedFor")))
            ]
            gangs = (_gang_of(pods.get((namespace, user))) for user in users)
            gang = next(filter(None, gangs), "")
            yield Holder(f"{namespace}/{name}", tuple(users), f"{namespace}/{gang}" if gang else "")


def _gang_of(pod: Raw | None) -> str:
    return text(mapping(mapping((pod or {}).get("metadata")).get("labels")).get(api.LABEL))


def _gangs(cluster: Cluster) -> Iterator[GangLine]:
    asked = 0
    for namespace, name, _ in sorted(cluster.snapshot.named(api.KIND), key=lambda one: one[:2]):
        try:
            found = find_gang(cluster.snapshot, namespace, name)
        except DragoonError as error:
            yield GangLine(f"{namespace}/{name}", "", 0, 0, error.message)
            continue
        if found is None:
            continue
        status = found.status
        line = GangLine(
            str(found),
            status.phase.value if status.phase else "",
            status.members.ready,
            found.spec.size,
        )
        if status.phase in api.SETTLED:
            yield line
        elif asked < _PLANNED:
            asked += 1
            yield _explained(line, explain_gang_in(cluster, found))
        else:
            yield replace(line, message=status.waiting_for, lines=status.explanation)


def _explained(line: GangLine, found: Explained) -> GangLine:
    answer = found.gang
    if answer is None:
        return replace(line, message=found.message)
    return replace(line, message=found.message, lines=answer.reasons, change=answer.change)


def _waiting(snapshot: ClusterSnapshot) -> Iterator[str]:
    """Pods with claims that are on no node, those of gangs left out."""
    for pod in snapshot.pods:
        spec = mapping(pod.get("spec"))
        settled = spec.get("nodeName") or has_ended(pod) or _gang_of(pod)
        if spec.get("resourceClaims") and not settled:
            yield "/".join(identity(pod))
