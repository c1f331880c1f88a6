"""Checks of the node's kubelet and of the plugin that serves it."""

from collections.abc import Iterator
from typing import Final

from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.codes import Check

_PLUGIN: Final = "kubectl get pods -A -l app.kubernetes.io/component=plugin -o wide"


def _no_root(evidence: Evidence) -> Iterator[Problem]:
    folders = known(evidence.kubelet)
    for name in folders.missing:
        yield Problem(
            "kubeletRoot", f"{folders.root / name} is not a folder", "ps -o args -C kubelet"
        )


def _nobody_registered(evidence: Evidence) -> Iterator[Problem]:
    _ = known(evidence.kubelet)
    sockets = known(evidence.sockets)
    if all(one.problem for one in sockets):
        told = "; ".join(f"{one.path.name}: {one.problem}" for one in sockets)
        found = "no plugin of this driver serves the kubelet"
        yield Problem(evidence.driver_name, f"{found} ({told})" if told else found, _PLUGIN)


def _dead_sockets(evidence: Evidence) -> Iterator[Problem]:
    sockets = known(evidence.sockets)
    if any(not one.problem for one in sockets):
        for one in sockets:
            if one.problem:
                yield Problem(str(one.path), one.problem, f"rm {one.path}")


def _not_ready(evidence: Evidence) -> Iterator[Problem]:
    for missing in known(evidence.readiness):
        yield Problem("plugin", missing, _PLUGIN)


RULES: Final = (
    Rule(
        Check(
            "KUBELET001",
            "error",
            "The kubelet's folders are not where kubeletRoot says",
            "The plugin would register where no kubelet looks.",
            "Set `kubeletRoot` (chart: `kubeletRootDir`) to the kubelet's `--root-dir`.",
        ),
        _no_root,
        before=True,
    ),
    Rule(
        Check(
            "KUBELET002",
            "error",
            "No plugin is registered with this node's kubelet",
            "Pods whose claims have devices of this node wait in ContainerCreating.",
            "Look why the plugin's pod does not run here. Prepared claims stay as they are.",
        ),
        _nobody_registered,
    ),
    Rule(
        Check(
            "KUBELET003",
            "warning",
            "A socket of a plugin that is gone",
            "The kubelet dials it again and again.",
            "The plugin removes it at its next start; it can be removed by hand.",
        ),
        _dead_sockets,
    ),
    Rule(
        Check(
            "KUBELET004",
            "error",
            "The plugin runs here and is not ready",
            "Until it is, nothing of this node is published, or no claim is prepared.",
            "The message says what is missing; look at the plugin's log.",
        ),
        _not_ready,
    ),
)
