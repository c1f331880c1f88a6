"""Checks of what gangs need, and of what they leave behind."""

from collections.abc import Iterator
from typing import Final

from dragoon.api import gang
from dragoon.api.names import LABEL_GANG_UID
from dragoon.diagnose import installed
from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.codes import Check
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.pods import claims_of, has_ended
from dragoon.diagnose.snapshot import ClusterSnapshot, NotReadError, identity
from dragoon.kube.port import GANGS, PODS, TAINT_RULES

_TROUBLED: Final = frozenset((gang.Phase.INVALID, gang.Phase.STUCK))


def _wanted(evidence: Evidence) -> None:
    """Raises NotReadError where gangs are not installed."""
    if known(known(evidence.served)[GANGS]):
        raise NotReadError("gangs are not installed: no CRD gangs.dragoon.dev")


def _no_gate(evidence: Evidence) -> Iterator[Problem]:
    _wanted(evidence)
    if not known(evidence.admission).gate:
        what = "a pod with the label dragoon.dev/gang is created without the gate"
        yield _inactive("gate.gangs.dragoon.dev", what)


def _no_finalizer(evidence: Evidence) -> Iterator[Problem]:
    _wanted(evidence)
    if not known(evidence.admission).finalizer:
        what = "a claim for our classes is created without its finalizer"
        yield _inactive("claim-finalizer.gangs.dragoon.dev", what)


def _inactive(policy: str, what: str) -> Problem:
    """A policy that does nothing, as is seen by what is created."""
    return Problem(
        f"MutatingAdmissionPolicy {policy}",
        what,
        "kubectl get mutatingadmissionpolicies,mutatingadmissionpolicybindings",
    )


def _not_held(evidence: Evidence) -> Iterator[Problem]:
    _wanted(evidence)
    snapshot = known(evidence.cluster)
    for pod in _members(snapshot):
        spec = mapping(pod.get("spec"))
        waits = not _is_gated(pod) and not spec.get("nodeName")
        if waits and claims_of(pod, snapshot).pending:
            namespace, name = identity(pod)
            yield Problem(
                f"pod {namespace}/{name}",
                "has the label dragoon.dev/gang and is not held by the gate",
                f"kubectl delete pod {name} -n {namespace}",
            )


def _in_trouble(evidence: Evidence) -> Iterator[Problem]:
    for raw in installed.objects_of(known(evidence.cluster), GANGS):
        status = mapping(raw.get("status"))
        if text(status.get("phase")) in _TROUBLED:
            namespace, name = identity(raw)
            yield Problem(
                f"gang {namespace}/{name}",
                f"{status['phase']}: {text(status.get('waitingFor')) or 'no reason is told'}",
                f"dragoon explain gang/{name} -n {namespace}",
            )


def _orphan_rule(evidence: Evidence) -> Iterator[Problem]:
    _wanted(evidence)
    snapshot = known(evidence.cluster)
    living = {
        text(mapping(one.get("metadata")).get("uid"))
        for one in installed.objects_of(snapshot, GANGS)
    }
    for rule in installed.objects_of(snapshot, TAINT_RULES):
        metadata = mapping(rule.get("metadata"))
        owner = mapping(metadata.get("labels")).get(LABEL_GANG_UID)
        if owner and owner not in living:
            name = identity(rule)[1]
            pool = mapping(mapping(rule.get("spec")).get("deviceSelector")).get("pool")
            yield Problem(
                f"DeviceTaintRule {name}",
                f"closes pool {pool} for a gang that is gone",
                f"kubectl delete devicetaintrule {name}",
            )


def _no_controller(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    if any(installed.pods_of(snapshot, installed.CONTROLLER)):
        return
    if not any(installed.pods_of(snapshot, installed.PLUGIN)):
        raise NotReadError("no pod of Dragoon is seen, so the controller may run elsewhere")
    held = [pod for pod in _members(snapshot) if _is_gated(pod)]
    if held:
        namespace, name = identity(held[0])
        yield Problem(
            f"pod {namespace}/{name}",
            f"{len(held)} pods are held by the gate and no controller runs",
            "kubectl get deployments -A -l app.kubernetes.io/component=controller",
        )


def _members(snapshot: ClusterSnapshot) -> Iterator[Raw]:
    """Living pods with the label of a gang."""
    for pod in installed.objects_of(snapshot, PODS):
        metadata = mapping(pod.get("metadata"))
        lives = not has_ended(pod) and not metadata.get("deletionTimestamp")
        if lives and gang.LABEL in mapping(metadata.get("labels")):
            yield pod


def _is_gated(pod: Raw) -> bool:
    gates = map(mapping, listed(mapping(pod.get("spec")).get("schedulingGates")))
    return any(one.get("name") == gang.GATE for one in gates)


RULES: Final = (
    Rule(
        Check(
            "GANG001",
            "error",
            "The API server does not hold pods of gangs",
            "They would be scheduled one by one, so the controller plans none of them.",
            "Apply deploy/policies/gang-gate.yaml (chart: `gangs.enabled`). Needs "
            "MutatingAdmissionPolicy, served since 1.36.",
        ),
        _no_gate,
    ),
    Rule(
        Check(
            "GANG002",
            "warning",
            "Claims are created without their finalizer",
            "The controller has to write it first: one write more for every claim of a gang.",
            "Apply deploy/policies/claim-finalizer.yaml.",
        ),
        _no_finalizer,
    ),
    Rule(
        Check(
            "GANG003",
            "error",
            "A pod of a gang is not held",
            "It was made while the gate was off: it is never planned, and its gang may wait for it.",
            "Delete the pod: its owner makes it again, with the gate.",
        ),
        _not_held,
    ),
    Rule(
        Check(
            "GANG004",
            "warning",
            "A gang needs a person",
            "It does not go on by itself.",
            "The message says which pod, which node and why.",
        ),
        _in_trouble,
    ),
    Rule(
        Check(
            "GANG005",
            "warning",
            "A rule of a gang that is gone",
            "Nobody but gangs gets devices of that pool.",
            "The controller removes it within a minute; remove it by hand where none runs.",
        ),
        _orphan_rule,
    ),
    Rule(
        Check(
            "GANG006",
            "error",
            "Pods wait at the gate and no controller runs",
            "They wait for ever.",
            "Start the controller, or let them go with `dragoon gangs release --all`.",
        ),
        _no_controller,
    ),
)
