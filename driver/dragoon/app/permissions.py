"""What our processes may do in the API server: the RBAC rules that their code needs, as data.

The chart and the end-to-end tests take the rules from here, and tests compare them with the calls
that a run of each process really makes: nothing is missing and nothing more is granted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api.names import check_driver_name
from dragoon.gang.discovering.table import OBJECTS
from dragoon.gang.kueue.apis import LATEST
from dragoon.kube.port import (
    CLAIMS,
    CLASSES,
    EVENTS,
    GANGS,
    JOBS,
    LEASES,
    NODES,
    POD_TEMPLATES,
    PODS,
    PRIORITY_CLASSES,
    PROVISIONING_REQUESTS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Object,
    Resource,
)
from dragoon.kube.rights import REVIEWS

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
    Rule(
        NODES,
        ("get", "list", "watch"),
        "of the own Node only: the owner of our slices, the forms that its label asks for, who else "
        "offers its cards",
    ),
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
        "and the kubelet tries again only after 60 to 90 s",
    ),
)
"""For the group system:nodes. The price: every kubelet may read every claim."""


_LOOKED_AT: Final = ("list", "watch")
_GROUPS: Final = tuple(dict.fromkeys(OBJECTS.values()))

CONTROLLER_RULES: Final = (
    Rule(PODS, (*_LOOKED_AT, "patch"), "members of gangs: the gate, the pin; waking kubelets"),
    Rule(PODS, ("patch",), "status.nominatedNodeName holds a member's CPU", subresource="status"),
    Rule(
        PODS,
        ("create",),
        "a member that cannot be bound, or that holds what was given twice; budgets are kept",
        subresource="eviction",
    ),
    Rule(CLAIMS, (*_LOOKED_AT, "patch"), "claims of members; the finalizer where it is missing"),
    Rule(CLAIMS, ("patch",), "status.allocation", subresource="status"),
    Rule(
        CLAIMS,
        ("patch",),
        "the same, since 1.36: asked for without a namespace "
        "(DRAResourceClaimGranularStatusAuthorization)",
        subresource="binding",
    ),
    Rule(SLICES, _LOOKED_AT, "the devices that there are"),
    Rule(CLASSES, _LOOKED_AT, "what claims ask for"),
    Rule(NODES, _LOOKED_AT, "where members fit"),
    Rule(PRIORITY_CLASSES, _LOOKED_AT, "whether the one that a pod names is there"),
    Rule(JOBS, (*_LOOKED_AT, "patch"), "whose the members are; suspending one to release it"),
    Rule(
        TAINT_RULES,
        (*_LOOKED_AT, "get", "create", "patch", "delete"),
        "keeping kube-scheduler off the pools of a gang, and off what was given twice",
    ),
    *(Rule(kind, _LOOKED_AT, "groups of other projects, where there are any") for kind in _GROUPS),
    Rule(
        PROVISIONING_REQUESTS,
        (*_LOOKED_AT, "create", "delete"),
        "asking an autoscaler for nodes, where there is one that takes requests",
    ),
    Rule(POD_TEMPLATES, ("create",), "what pods such a request is for"),
    Rule(GANGS, (*_LOOKED_AT, "create", "patch", "delete"), "gangs made from labels"),
    Rule(GANGS, ("patch",), "the plan's journal, and how a gang stands", subresource="status"),
    Rule(
        EVENTS,
        (*_LOOKED_AT, "create", "patch"),
        "telling what is wrong; kubelets say so that they could not prepare claims",
    ),
)

KUEUE_RULES: Final = (
    Rule(LATEST.checks, _LOOKED_AT, "which checks are ours"),
    Rule(LATEST.checks, ("patch",), "whether they are active", subresource="status"),
    Rule(LATEST.workloads, _LOOKED_AT, "whose pods are to be placed"),
    Rule(
        LATEST.workloads,
        ("patch",),
        "the state of our check, its reason, and when to try again",
        subresource="status",
    ),
    Rule(LATEST.flavors, ("get",), "the nodes that a flavor means"),
    Rule(TEMPLATES, ("get",), "the claims that pods will have"),
)
"""For the controller where Kueue is; rights on kinds that are not there do nothing."""

CONTROLLER_HOME_RULES: Final = (
    Rule(LEASES, ("get", "create", "update"), "one of several controllers works"),
    Rule(PODS, ("create",), "a labelled pod, never stored: the proof that it would be held"),
    Rule(CLAIMS, ("create",), "a claim, never stored: whether it would get its finalizer"),
)
"""In the controller's own namespace only."""

RETIRE_RULES: Final = (
    Rule(
        CLAIMS,
        ("list", "patch"),
        "which still hold devices, without whose plugin no pod can end; the finalizer that our policy "
        "gave those that hold none",
    ),
    Rule(PODS, ("list", "patch"), "letting pods go that are held by the gate of gangs"),
    Rule(TAINT_RULES, ("list", "delete"), "the rules of gangs"),
    Rule(GANGS, ("list",), "plans that are to be dropped"),
    Rule(GANGS, ("patch",), "dropping them", subresource="status"),
    Rule(SLICES, ("list", "delete"), "what the plugins published"),
)
"""Of `dragoon retire`, only while the chart is removed."""

CHECK_RULES: Final = (
    Rule(CLASSES, ("list",), "what claims ask for"),
    Rule(SLICES, ("list",), "what is published"),
    Rule(CLAIMS, ("list",), "who holds what, and who waits"),
    Rule(TEMPLATES, ("list",), "what claims will ask for"),
    Rule(PODS, ("list",), "whether plugin and controller run; gangs that are not held"),
    Rule(NODES, ("list",), "which nodes have no plugin"),
    Rule(TAINT_RULES, ("list",), "rules that nobody needs any more"),
    Rule(GANGS, ("list",), "gangs that are stuck"),
    Rule(REVIEWS, ("create",), "whether plugin and controller have their rights"),
)
"""Of `dragoon check` in `helm test`, only while it runs. What it would try by dry-run creates of
pods, claims and slices it leaves out: RBAC cannot tell a dry run from a write."""


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


def controller_objects(driver: str, *, service_account: str, namespace: str) -> list[Object]:
    """The roles and bindings of the controller, named after the driver.

    Raises ConfigError for a bad driver name.
    """
    check_driver_name(driver)
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    name = f"{driver}:controller"
    return [
        *_granted(name, CONTROLLER_RULES, account, driver),
        *_granted(f"{name}-kueue", KUEUE_RULES, account, driver),
        *_granted(name, CONTROLLER_HOME_RULES, account, driver, namespace),
    ]


def chart_roles(driver: str) -> dict[str, Object]:
    """The roles as the chart wants them: name -> component, kind and rules.

    component is whom the role is for: plugin, controller, kubelets; retire, the hooks of
    `helm uninstall`; check, the hook of `helm test`.
    """
    roles = {
        "plugin": ("plugin", "ClusterRole", PLUGIN_RULES),
        "kubelets-read-claims": ("kubelets", "ClusterRole", KUBELET_RULES),
        "controller": ("controller", "ClusterRole", CONTROLLER_RULES),
        "controller-kueue": ("controller", "ClusterRole", KUEUE_RULES),
        "controller-home": ("controller", "Role", CONTROLLER_HOME_RULES),
        "retire": ("retire", "ClusterRole", RETIRE_RULES),
        "check": ("check", "ClusterRole", CHECK_RULES),
    }
    return {
        name: {
            "component": component,
            "kind": kind,
            "rules": [rule.as_object(driver) for rule in rules],
        }
        for name, (component, kind, rules) in roles.items()
    }


def _granted(
    name: str,
    rules: tuple[Rule, ...],
    subject: Mapping[str, str],
    driver: str,
    namespace: str = "",
) -> list[Object]:
    """A role and its binding; with a namespace for what is in there only."""
    meta: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    scope = "" if namespace else "Cluster"
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{scope}Role",
            "metadata": dict(meta),
            "rules": [rule.as_object(driver) for rule in rules],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{scope}RoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": _RBAC, "kind": f"{scope}Role", "name": name},
            "subjects": [dict(subject)],
        },
    ]
