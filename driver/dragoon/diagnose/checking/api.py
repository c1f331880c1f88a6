"""Checks of the API server and of what is installed in it."""

from collections.abc import Iterator
from typing import Final

from dragoon.allocator.model import Node
from dragoon.api.names import KEEPS_OFF, TAINT_FORM_WITHDRAWN, TAINT_GANG_ONLY, TAINT_OTHER_OWNER
from dragoon.diagnose import installed
from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.cluster import Cluster
from dragoon.diagnose.codes import Check
from dragoon.diagnose.manifests import mapping, text
from dragoon.diagnose.snapshot import identity
from dragoon.errors import DragoonError
from dragoon.kube.port import CLAIMS, CLASSES, NODES, SLICES
from dragoon.publish import owners
from dragoon.publish.floor import floor

_NEEDED: Final = (CLASSES, SLICES, CLAIMS)
_VERSION: Final = "kubectl version"
_WANTED: Final = frozenset((TAINT_OTHER_OWNER, TAINT_GANG_ONLY, TAINT_FORM_WITHDRAWN))
"""Taints that say something else than that a device is not well."""


def _too_old(evidence: Evidence) -> Iterator[Problem]:
    found = floor(known(evidence.version))
    if not found.publishes:
        yield Problem("Kubernetes", found.problem, _VERSION)


def _limited(evidence: Evidence) -> Iterator[Problem]:
    found = floor(known(evidence.version))
    if found.publishes and found.problem:
        yield Problem("Kubernetes", found.problem, _VERSION)


def _not_served(evidence: Evidence) -> Iterator[Problem]:
    served = known(evidence.served)
    for resource in _NEEDED:
        why_not = known(served[resource])
        if why_not:
            yield Problem(
                f"{resource.plural}.{resource.api_version}",
                why_not,
                "kubectl api-resources --api-group resource.k8s.io",
            )


def _dropped(evidence: Evidence) -> Iterator[Problem]:
    for feature, kept in known(evidence.kept).items():
        if not kept:
            yield Problem(
                feature,
                "the server drops these fields of a ResourceSlice",
                "kubectl get --raw /metrics",
            )


def _no_class(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    there = {identity(one)[1] for one in installed.objects_of(snapshot, CLASSES)}
    wanted: dict[str, None] = {}
    for device in installed.devices_of(snapshot, evidence.driver_name):
        wanted[device.class_name] = None
    for name in wanted:
        if name not in there:
            yield Problem(
                f"DeviceClass {name}",
                "is not there, and devices that it selects are published",
                f"kubectl apply -f deviceclasses/{name}.yaml",
            )


def _no_right(evidence: Evidence) -> Iterator[Problem]:
    for one in known(evidence.rights):
        namespace, _, name = one.who.partition("/")
        yield Problem(
            f"ServiceAccount {one.who}",
            f"may not {one.right}: needed for {one.why}",
            f"kubectl auth can-i {one.right} --as system:serviceaccount:{namespace}:{name}",
        )


def _not_running(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    for component in (installed.PLUGIN, installed.CONTROLLER):
        for pod in installed.pods_of(snapshot, component):
            if not installed.is_ready(pod):
                namespace, name = identity(pod)
                node = text(mapping(pod.get("spec")).get("nodeName"))
                on = f" on node {node}" if node else ""
                yield Problem(
                    f"pod {namespace}/{name}",
                    f"the {component}{on} is not ready",
                    f"kubectl logs -n {namespace} {name}",
                )


def _nothing_published(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    having = {
        mapping(one.get("spec")).get("nodeName")
        for one in installed.slices_of(snapshot, evidence.driver_name)
    }
    for pod in installed.pods_of(snapshot, installed.PLUGIN):
        node = text(mapping(pod.get("spec")).get("nodeName"))
        if node and installed.is_ready(pod) and node not in having:
            namespace, name = identity(pod)
            yield Problem(
                f"node {node}",
                "a plugin is ready there and no slice of the node exists",
                f"kubectl logs -n {namespace} {name}",
            )


def _offered_twice(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    told: set[str] = set()
    for node in installed.objects_of(snapshot, NODES):
        name = identity(node)[1]
        for resource, amount in owners.plugin_resources(node):
            told.add(name)
            yield Problem(
                f"node {name}",
                f"a device plugin offers {resource}: {amount}",
                f"kubectl describe node {name}",
            )
    for device in installed.devices_of(snapshot, evidence.driver_name):
        for taint in device.taints:
            if taint.get("key") == TAINT_OTHER_OWNER and device.node not in told:
                yield Problem(
                    f"device {device.pool}/{device.name}",
                    f"{taint.get('value') or 'somebody else'} offers it too",
                    "kubectl get resourceslices",
                )


def _tainted(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    for device in installed.devices_of(snapshot, evidence.driver_name):
        for taint in device.taints:
            if taint.get("key") not in _WANTED and taint.get("effect") in KEEPS_OFF:
                value = f"={taint['value']}" if taint.get("value") else ""
                yield Problem(
                    f"device {device.pool}/{device.name}",
                    f"taint {taint.get('key')}{value}:{taint.get('effect')}",
                    f"dragoon status node/{device.node}",
                )


def _damaged_pool(evidence: Evidence) -> Iterator[Problem]:
    cluster = Cluster(known(evidence.cluster))
    told: set[str] = set()
    for raw in cluster.nodes:
        name, labels = identity(raw)[1], mapping(mapping(raw.get("metadata")).get("labels"))
        try:
            pools = cluster.view.site(Node(name, labels)).pools
        except DragoonError as error:
            yield Problem(f"node {name}", error.message, "kubectl get resourceslices")
            continue
        for pool in pools:
            if pool.problem and str(pool.id) not in told:
                told.add(str(pool.id))
                after = f"kubectl get resourceslices --field-selector spec.driver={pool.id.driver}"
                yield Problem(f"pool {pool.id}", pool.problem, after)


def _nobody_runs(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    if any(installed.slices_of(snapshot, evidence.driver_name)):
        return
    if not any(installed.pods_of(snapshot, installed.PLUGIN)):
        yield Problem(
            "the plugin",
            "no pod of it is there, and no node publishes anything",
            f"kubectl describe daemonsets -A -l {installed.PART_OF}={installed.OURS}",
        )


def _may_not_ask(evidence: Evidence) -> Iterator[Problem]:
    for right in known(evidence.denied):
        yield Problem("you", f"may not {right}", f"kubectl auth can-i {right}")


LACKS_A_RIGHT: Final = "API012"
"""Says what could not be looked at, and nothing about what is there."""

RULES: Final = (
    Rule(
        Check(
            "API001",
            "error",
            "Kubernetes is too old",
            "Nothing is published to it.",
            "Upgrade to 1.36.4 or later; 1.35 gives whole GPUs only.",
        ),
        _too_old,
        before=True,
    ),
    Rule(
        Check(
            "API002",
            "warning",
            "This version of Kubernetes does not allow everything",
            "What it would get wrong is not published, whatever the forms say.",
            "Upgrade to 1.36.4 or later.",
        ),
        _limited,
        before=True,
    ),
    Rule(
        Check(
            "API003",
            "error",
            "resource.k8s.io/v1 is not served",
            "There is no dynamic resource allocation in this cluster.",
            "Enable the API: `--runtime-config=resource.k8s.io/v1=true` of kube-apiserver.",
        ),
        _not_served,
        before=True,
    ),
    Rule(
        Check(
            "API004",
            "warning",
            "The API server drops fields that devices depend on",
            "Without taints nothing keeps claims off a sick GPU; without counters and shares only "
            "whole GPUs are published.",
            "Switch on DRADeviceTaints, or DRAPartitionableDevices and DRAConsumableCapacity, in "
            "kube-apiserver and kube-scheduler.",
        ),
        _dropped,
        before=True,
    ),
    Rule(
        Check(
            "API005",
            "error",
            "A DeviceClass is missing",
            "Claims cannot ask for devices that are there.",
            "Apply the files in `deviceclasses/`, or set `deviceClasses.create` in the chart.",
        ),
        _no_class,
    ),
    Rule(
        Check(
            "API006",
            "error",
            "A process of Dragoon lacks a right",
            "What it needs it for does not work.",
            "Apply what `dragoon rbac` prints, or upgrade the chart.",
        ),
        _no_right,
    ),
    Rule(
        Check(
            "API007",
            "error",
            "A pod of Dragoon is not ready",
            "A node without its plugin starts no pod with a claim; without a controller no gang is "
            "placed.",
            "Read its log and events.",
        ),
        _not_running,
    ),
    Rule(
        Check(
            "API008",
            "info",
            "A plugin runs and publishes nothing",
            "The node has no GPU, or its driver is not found: no claim can get a device of it.",
            "If it has GPUs, read the plugin's log and run `dragoon check` there; else keep the plugin "
            "off it with a nodeSelector.",
        ),
        _nothing_published,
    ),
    Rule(
        Check(
            "API009",
            "warning",
            "Somebody else offers the same GPUs",
            "One GPU would go to two pods, so ours are tainted.",
            "Remove the device plugin or the other driver from the node, or accept both with the "
            "label dragoon.dev/coexist=true.",
        ),
        _offered_twice,
        before=True,
    ),
    Rule(
        Check(
            "API010",
            "warning",
            "A device has a taint",
            "New claims do not get it; with NoExecute pods that have it are evicted.",
            "docs/health.md says what each taint means and what removes it.",
        ),
        _tainted,
    ),
    Rule(
        Check(
            "API011",
            "error",
            "The slices of a pool do not fit together",
            "No device of the pool is allocated. While it is being updated this passes in seconds.",
            "The plugin of the node repairs its slices; look at its log if this stays.",
        ),
        _damaged_pool,
    ),
    Rule(
        Check(
            LACKS_A_RIGHT,
            "warning",
            "Whoever runs the check lacks a right",
            "What it is needed for is not checked, or answered without.",
            "Ask an administrator for the verb and the resource that the message names; reading them "
            "is enough.",
        ),
        _may_not_ask,
        before=True,
    ),
    Rule(
        Check(
            "API013",
            "warning",
            "No plugin runs in the cluster",
            "There is no device to ask for, and every pod with a claim waits.",
            "Install the chart. If it is: its nodeSelector fits no node, or the namespace forbids "
            "privileged pods (label pod-security.kubernetes.io/enforce=privileged); the events of "
            "the DaemonSet say it.",
        ),
        _nobody_runs,
    ),
)
