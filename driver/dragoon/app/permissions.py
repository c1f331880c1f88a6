"""What the plugin may do in the API server: the RBAC rules that its code needs, as data.

The chart and the end-to-end tests take the rules from here, and a test compares them with the
calls that a run of the plugin really makes: nothing is missing and nothing more is granted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api.names import check_driver_name
from dragoon.kube.port import CLAIMS, EVENTS, NODES, PODS, SLICES, Object, Resource

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of object, what is done with it, and why.

    subresource: of the kind, empty for the object itself. of_driver: only for our driver's name,
    which takes the place of a resource's name.
    """

    resource: Resource
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    of_driver: bool = False

    @property
    def target(self) -> str:
        """As RBAC names it: `resourceclaims/status`."""
        return "/".join(filter(None, (self.resource.plural, self.subresource)))

    def as_object(self, driver: str) -> Object:
        """The rule as it stands in a ClusterRole."""
        names = {"resourceNames": [driver]} if self.of_driver else {}
        return {
            "apiGroups": [self.resource.group],
            "resources": [self.target],
            **names,
            "verbs": list(self.verbs),
        }


PLUGIN_RULES: Final = (
    Rule(NODES, ("get",), "the owner of our slices; who else offers this node's cards"),
    Rule(
        SLICES,
        ("list", "watch", "create", "update", "delete"),
        "publishing this node's devices and repairing them",
    ),
    Rule(CLAIMS, ("get",), "what a claim was given, before its devices are prepared"),
    Rule(
        CLAIMS,
        ("patch",),
        "conditions and data of prepared and refused devices, in status.devices",
        subresource="status",
    ),
    Rule(
        CLAIMS,
        ("associated-node:patch",),
        "the same, since 1.36: only entries of this driver, and only of claims of the node that the "
        "ServiceAccount token is bound to (a pod's token is; KEP-4817)",
        subresource="driver",
        of_driver=True,
    ),
    Rule(
        PODS,
        ("get", "list"),
        "which containers see a share, before it is limited; who still uses a claim, before its "
        "devices are taken back; whose the processes on the GPUs are",
    ),
    Rule(
        EVENTS,
        ("create", "patch"),
        "telling why a claim is refused, and about another owner of a card",
    ),
)

KUBELET_RULES: Final = (
    Rule(
        CLAIMS,
        ("get",),
        "in bursts of pods the node authorizer answers a kubelet's read of its own claim with 403, "
        "and the kubelet tries again only after 60 to 90 s (kubelet-tried.md 0.2)",
    ),
)
"""For the group system:nodes. The price: every kubelet may read every claim."""


def objects(
    driver: str, *, service_account: str, namespace: str, kubelets_read_claims: bool = True
) -> list[Object]:
    """The ClusterRoles and ClusterRoleBindings to apply, named after the driver.

    kubelets_read_claims: also grant KUBELET_RULES. Raises ConfigError for a bad driver name.
    """
    check_driver_name(driver)
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    found = _granted(f"{driver}:plugin", PLUGIN_RULES, account, driver)
    if kubelets_read_claims:
        group = {"kind": "Group", "apiGroup": _RBAC, "name": "system:nodes"}
        found += _granted(f"{driver}:kubelets-read-claims", KUBELET_RULES, group, driver)
    return found


def _granted(
    name: str, rules: tuple[Rule, ...], subject: Mapping[str, str], driver: str
) -> list[Object]:
    meta: dict[str, Any] = {"name": name}
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": dict(meta),
            "rules": [rule.as_object(driver) for rule in rules],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [dict(subject)],
        },
    ]
