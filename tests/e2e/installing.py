"""What the tests of the chart install, load, and look for afterwards."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from dragoon.api.names import DRIVER_NAME, FINALIZER
from realcluster.images import GLIBC
from realcluster.state import Node
from testbed import objects
from testbed.bed import Bed
from testbed.plugins import SYSTEM
from testbed.release import local_image
from testbed.serving import until_it_takes_pods

Object = dict[str, Any]

# The largest story needs 64 GPUs, and each of its pods eight of one node.
GPUS_OF_A_NODE: Final = 32
FORMS: Final = {"forms": "whole,shared,mig", "allowUnenforcedShares": True}

_PROFILES = Path(__file__).resolve().parents[2] / "driver/dragoon/gpu/sim/machines"
_CONFIG = "machine"
_FOLDER = "/etc/machine"
_JOB = "crowd"
_OURS = ("dragoon.dev", "dragoon-")
_KINDS = (
    *("clusterroles", "clusterrolebindings", "deviceclasses", "resourceslices"),
    *("devicetaintrules", "customresourcedefinitions"),
    *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
)
_HOME_KINDS = "pods,jobs,daemonsets,deployments,serviceaccounts,roles,rolebindings,configmaps,secrets,poddisruptionbudgets"
_SAMPLES = Path(__file__).resolve().parents[2] / "deviceclasses/samples"
_CLASSES = ("sim-mig", "sim-shared")


def surroundings() -> list[Object]:
    """The namespace of the release, a machine of 32 linked GPUs for the plugins, two more classes."""
    profile = yaml.safe_load((_PROFILES / "dgx-h100.yaml").read_text("utf-8"))
    (first, *_) = profile["gpus"]
    indexes = list(range(GPUS_OF_A_NODE))
    profile |= {
        "name": "wide-h100",
        "count": GPUS_OF_A_NODE,
        # Every placement slows kube-scheduler, so only two cards can be divided.
        "gpus": [{**first, "index": index, "migCapable": index < 2} for index in indexes],
        "nvlink": {**profile["nvlink"], "allPairsOf": indexes},
    }
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _CONFIG, "namespace": SYSTEM},
        "data": {"wide.yaml": yaml.safe_dump(profile)},
    }
    classes = [yaml.safe_load((_SAMPLES / f"{one}.yaml").read_text("utf-8")) for one in _CLASSES]
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}
    return [home, config, *classes]


def values() -> Object:
    """The values of the release: the local image, and that machine on every node."""
    return {
        "image": local_image(),
        "simulate": f"{_FOLDER}/wide.yaml",
        "config": FORMS,
        "kubeletPlugin": {
            "extraVolumes": [{"name": "machine", "configMap": {"name": _CONFIG}}],
            "extraVolumeMounts": [{"name": "machine", "mountPath": _FOLDER, "readOnly": True}],
        },
    }


def some_library() -> Path:
    """A library that is in the image with glibc at the same path as on this machine."""
    listed = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    return next(Path(word) for word in listed.split() if "/libc.so" in word)


def hami(library: Path) -> Object:
    """Values that copy this library to every node."""
    checksum = hashlib.sha256(library.read_bytes()).hexdigest()
    return {"image": GLIBC, "path": str(library), "sha256": checksum}


def add_column(crd: Path, name: str) -> None:
    """Gives a CRD's file one more printed column, as a later version of it might."""
    content = yaml.safe_load(crd.read_text("utf-8"))
    column = {"name": name, "type": "string", "jsonPath": ".status.phase"}
    content["spec"]["versions"][0]["additionalPrinterColumns"].append(column)
    crd.write_text(yaml.safe_dump(content), "utf-8")


def columns(bed: Bed) -> list[str]:
    """The printed columns of the CRD in the cluster."""
    found = bed.get("crd", "gangs.dragoon.dev")
    assert found is not None
    return [one["name"] for one in found["spec"]["versions"][0]["additionalPrinterColumns"]]


def crowd(namespace: str) -> Object:
    """A Job whose pods come and go; each succeeds only if it sees exactly one GPU."""
    script = 'test "$(ls /dev/dragoon | wc -l)" = 1 && sleep 0.5'
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _JOB, "namespace": namespace},
        "spec": {
            "completions": 2000,
            "parallelism": 4,
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
                    "containers": [objects.container("main", "gpu", script=script)],
                }
            },
        },
    }


def crowd_status(bed: Bed, namespace: str) -> Object:
    found = bed.get("job", _JOB, namespace)
    assert found is not None
    status: Object = found.get("status", {})
    return status


def lonely_member(namespace: str) -> Object:
    """A pod of a gang that will never be complete: the gate holds it."""
    pod = objects.pod(
        "waits", namespace, objects.container("main", "gpu"), templates={"gpu": "one"}
    )
    pod["metadata"] |= {
        "labels": {"dragoon.dev/gang": "lonely"},
        "annotations": {"dragoon.dev/gang-size": "9"},
    }
    return pod


def unmanaged(bed: Bed, namespace: str) -> str:
    """Another namespace, where the policy of visible devices leaves pods alone."""
    name = f"{namespace}-own"
    labels = {"dragoon.dev/visible-devices": "unmanaged"}
    bed.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )
    until_it_takes_pods(bed.cluster, name)
    return name


def device_names(bed: Bed, node: str) -> list[str]:
    return [device["name"] for one in bed.slices(node) for device in one["spec"].get("devices", ())]


def uids(bed: Bed, component: str) -> set[str]:
    """Which pods of a component there are."""
    found = bed.items("pods", "-n", SYSTEM, "-l", f"app.kubernetes.io/component={component}")
    return {pod["metadata"]["uid"] for pod in found}


def restarts(bed: Bed) -> int:
    """How often containers of the release were started again."""
    return sum(
        status["restartCount"]
        for pod in bed.items("pods", "-n", SYSTEM)
        for status in pod["status"].get("containerStatuses") or ()
    )


def gates(bed: Bed, namespace: str) -> list[str]:
    pod = bed.get("pod", "waits", namespace)
    assert pod is not None
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def finalizers(bed: Bed, namespace: str) -> list[str]:
    """Claims of a namespace that have the finalizer and no allocation."""
    return [
        claim["metadata"]["name"]
        for claim in bed.items("resourceclaims", "-n", namespace)
        if FINALIZER in claim["metadata"].get("finalizers", ())
        and not claim.get("status", {}).get("allocation")
    ]


def left_in_cluster(bed: Bed) -> list[str]:
    """Objects of the release that are still there, as `kind/name`."""
    found = [
        f"{one['kind'].lower()}/{one['metadata']['name']}"
        for one in bed.items(",".join(_KINDS))
        if any(mark in one["metadata"]["name"] for mark in _OURS)
        and one["metadata"]["name"].removesuffix(".dragoon.dev") not in _CLASSES
    ]
    found += [
        f"{one['kind'].lower()}/{one['metadata']['name']}"
        for one in bed.items(_HOME_KINDS, "-n", SYSTEM)
        if one["metadata"]["name"] not in {"default", "kube-root-ca.crt", _CONFIG}
    ]
    return sorted(found)


def left_on_node(node: Node) -> list[str]:
    """Sockets, journal entries and CDI specs on a node."""
    root = Path(node.kubelet_root)
    state = root / "plugins" / DRIVER_NAME
    found = [*root.glob(f"plugins_registry/*{DRIVER_NAME}*"), *state.glob("*.sock")]
    found += [*state.glob("journal/*.json"), *Path(node.cdi_folder).iterdir()]
    return sorted(path.name for path in found)
