"""Checks of the container runtime: whether it applies our CDI specs."""

import re
from collections.abc import Iterator
from typing import Final

from dragoon.diagnose import installed
from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.codes import Check
from dragoon.diagnose.manifests import mapping, text
from dragoon.diagnose.snapshot import identity
from dragoon.kube.port import NODES

_DUMP: Final = "containerd config dump | dragoon cdi runtime -"
_CONTAINERD: Final = re.compile(r"containerd://v?(\d+)\.(\d+)")
_FIRST_WITH_CDI: Final = (1, 7)


def _off(evidence: Evidence) -> Iterator[Problem]:
    found = known(evidence.runtime)
    if found.on is False:
        yield Problem(found.runtime, "CDI is off", _DUMP)


def _elsewhere(evidence: Evidence) -> Iterator[Problem]:
    found, folder = known(evidence.runtime), known(evidence.cdi)
    if found.on is not False and not found.reads(str(folder.path)):
        read = ", ".join(found.folders) or "none"
        yield Problem(found.runtime, f"reads {read}, our specs are in {folder.path}", _DUMP)


def _unclear(evidence: Evidence) -> Iterator[Problem]:
    found = known(evidence.runtime)
    if found.on is None:
        yield Problem(found.runtime, "the file does not say whether CDI is on", _DUMP)


def _unreadable(evidence: Evidence) -> Iterator[Problem]:
    folder = known(evidence.cdi)
    for name, reason in folder.bad.items():
        yield Problem(f"{folder.path}/{name}", reason, f"cat {folder.path}/{name}")


def _too_old(evidence: Evidence) -> Iterator[Problem]:
    for node in installed.objects_of(known(evidence.cluster), NODES):
        info = mapping(mapping(node.get("status")).get("nodeInfo"))
        told = text(info.get("containerRuntimeVersion"))
        found = _CONTAINERD.match(told)
        old = found is not None and (int(found[1]), int(found[2])) < _FIRST_WITH_CDI
        if old or told.startswith("docker://"):
            name = identity(node)[1]
            yield Problem(f"node {name}", f"runs {told}", f"kubectl describe node {name}")


RULES: Final = (
    Rule(
        Check(
            "RUNTIME001",
            "error",
            "The container runtime has CDI off",
            "Containers start without a GPU and without an error.",
            "containerd: set `enable_cdi = true` under its CRI plugin and restart it. Docker with "
            "cri-dockerd cannot do it.",
        ),
        _off,
        before=True,
    ),
    Rule(
        Check(
            "RUNTIME002",
            "error",
            "The container runtime does not read our CDI folder",
            "Containers that should have a GPU fail with `unresolvable CDI devices`.",
            "Add the folder to `cdi_spec_dirs`, or set `cdiRoot` to one that is read.",
        ),
        _elsewhere,
        before=True,
    ),
    Rule(
        Check(
            "RUNTIME003",
            "warning",
            "The runtime's configuration leaves open whether CDI is on",
            "Before containerd 2.0 it is off where the file does not say it.",
            "Set `enable_cdi = true`, or give what `containerd config dump` prints with "
            "`--runtime-config`.",
        ),
        _unclear,
        before=True,
    ),
    Rule(
        Check(
            "RUNTIME004",
            "warning",
            "A file in the CDI folder cannot be read by the runtime",
            "The runtime leaves it out; containers that ask for its devices do not start.",
            "Remove it, or make whoever wrote it write it again.",
        ),
        _unreadable,
        before=True,
    ),
    Rule(
        Check(
            "RUNTIME005",
            "error",
            "A node's container runtime has no CDI",
            "Containers there get no GPU.",
            "Use containerd 1.7 or later (2.0 has CDI on), or CRI-O.",
        ),
        _too_old,
        before=True,
    ),
)
