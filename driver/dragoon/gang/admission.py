"""Whether the API server really holds pods of gangs: asked of itself, not read from policies.

A pod that is created without being stored shows what admission makes of it. Policies take effect
some tenths of a second after they were written, and may be missing, unbound or
edited: the answer of the server is the only proof.
"""

from dataclasses import dataclass
from typing import Final

from dragoon.api import gang
from dragoon.api.names import FINALIZER
from dragoon.errors import ApiError, DragoonError
from dragoon.kube.port import CLAIMS, PODS, Api, Object

POLICY_GATE: Final = "gate.gangs.dragoon.dev"
POLICY_FINALIZER: Final = "claim-finalizer.gangs.dragoon.dev"
_NAME: Final = "dragoon-gate-proof"


class GateMissingError(DragoonError):
    """Pods of gangs are not held: nothing may be planned."""

    code = "GateMissing"
    default_hint = (
        f"apply the MutatingAdmissionPolicy {POLICY_GATE} and its binding (deploy/policies), on "
        "Kubernetes 1.36 or later"
    )
    default_retryable = True


@dataclass(frozen=True, slots=True)
class Proof:
    """What admission does. finalizer: claims for our classes get it when they are created."""

    gate: bool
    finalizer: bool


async def prove(api: Api, namespace: str, device_class: str) -> Proof:
    """Creates a labelled pod and a claim without storing them, and looks at the answers.

    namespace: must exist. Raises what the API server says.
    """
    pod = await api.create(PODS, _pod(namespace), dry_run=True)
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    claim = await api.create(CLAIMS, _claim(namespace, device_class), dry_run=True)
    return Proof(
        gate=any(gate.get("name") == gang.GATE for gate in gates),
        finalizer=FINALIZER in (claim["metadata"].get("finalizers") or ()),
    )


async def demand_gate(api: Api, namespace: str, device_class: str) -> Proof:
    """As `prove`. Raises GateMissingError where labelled pods are not held."""
    try:
        found = await prove(api, namespace, device_class)
    except ApiError as error:
        if error.retryable:
            raise
        raise GateMissingError(
            f"a labelled pod cannot be created in namespace {namespace}: {error.message}",
            hint=error.hint or None,
        ) from error
    if not found.gate:
        raise GateMissingError(
            f"a pod with the label {gang.LABEL} came without the scheduling gate {gang.GATE}"
        )
    return found


def _pod(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _NAME,
            "namespace": namespace,
            "labels": {gang.LABEL: _NAME},
            "annotations": {gang.ANNOTATION_SIZE: "1"},
        },
        "spec": {
            "containers": [
                {
                    "name": "none",
                    "image": "none.invalid/none",
                    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "runAsNonRoot": True,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                }
            ],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
        },
    }


def _claim(namespace: str, device_class: str) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": _NAME, "namespace": namespace},
        "spec": {"devices": {"requests": [request]}},
    }
