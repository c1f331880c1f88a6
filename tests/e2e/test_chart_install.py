"""The chart on a real cluster: the kubelet starts the plugin that serves it, Helm brings and takes it."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.names import DRIVER_NAME
from realcluster import bringup, teardown
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.layout import default_name
from realcluster.state import Settings
from testbed import manifests, objects
from testbed.bed import Bed, is_running
from testbed.plugins import SYSTEM
from testbed.release import Helm, built_image, local_image
from testbed.serving import create_namespace
from testbed.waiting import settles, until
from tests.e2e import installing

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.timeout(900)]

_CLUSTER = f"i-{default_name()}"
_STORIES = {
    "one-gpu.yaml": [1],
    "at-least-40gb.yaml": [1],
    "linked-pair.yaml": [2],
    "ten-gib.yaml": [1],
    "two-slices.yaml": [1],
    "eight-by-eight.yaml": [8] * 8,
}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def bed(image: Path) -> Iterator[Bed]:
    """A cluster of its own whose nodes have the image; nothing of Dragoon runs on them."""
    teardown.down(_CLUSTER)
    try:
        bringup.up(_CLUSTER, node_count=2, settings=Settings(usual_paths=True))
        cluster = Cluster.open(_CLUSTER)
        cluster.import_image(image)
        yield Bed(cluster, {})
    finally:
        teardown.down(_CLUSTER)


@pytest.fixture(scope="module")
def helm(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(bed.cluster, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def package(helm: Helm) -> Path:
    return helm.package()


@pytest.fixture
def installed(bed: Bed, helm: Helm, package: Path) -> None:
    """The release; installed where it is not."""
    if bed.get("daemonset", "dragoon-plugin", SYSTEM) is None:
        bed.apply(*installing.surroundings())
        helm.install(package, installing.values())


@pytest.fixture(scope="module")
def one_for_all(bed: Bed) -> str:
    """A namespace for several tests: one to itself costs ten seconds to remove."""
    create_namespace(bed.cluster, "stories")
    return "stories"


@pytest.fixture
def stories(bed: Bed, one_for_all: str) -> Iterator[str]:
    """That namespace, empty before and after."""
    yield one_for_all
    for kinds in ("jobs", "pods", "resourceclaims,resourceclaimtemplates"):
        bed.kubectl("delete", kinds, "--all", "-n", one_for_all)


def test_a_release_brings_a_plugin_to_every_node_and_its_gpus_into_the_cluster(
    bed: Bed, installed: None
) -> None:
    pods = bed.items("pods", "-n", SYSTEM)
    by_component: dict[str, list[Any]] = {}
    for pod in pods:
        by_component.setdefault(
            pod["metadata"]["labels"]["app.kubernetes.io/component"], []
        ).append(pod)
    assert all(is_running(pod) for pod in pods)
    assert len(by_component["controller"]) == 2
    assert {pod["spec"]["nodeName"] for pod in by_component["plugin"]} == {"node-0", "node-1"}
    for node in bed.cluster.nodes:
        until(f"the GPUs of {node.name} are published", partial(_whole_and_shared, bed, node.name))


def _whole_and_shared(bed: Bed, node: str) -> bool:
    """Whether every GPU of a node is there, and once more as shares."""
    found = [name for name in installing.device_names(bed, node) if "mig" not in name]
    return len(found) == 2 * installing.GPUS_OF_A_NODE


@pytest.mark.parametrize("story", _STORIES)
def test_the_user_stories_get_what_their_manifests_say(
    bed: Bed, installed: None, stories: str, story: str
) -> None:
    bed.apply(*manifests.tried(manifests.read(story), stories))
    expected = _STORIES[story]

    def all_running() -> list[Any]:
        pods = bed.items("pods", "-n", stories)
        return pods if len(pods) == len(expected) and all(map(is_running, pods)) else []

    pods = until(f"the pods of {story} run", all_running)
    seen = []
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        nodes, named = bed.devices_seen(pod["metadata"]["name"], stories, container["name"])
        assert nodes == named
        seen.append(len(nodes))
    assert seen == expected


def test_a_pod_without_a_claim_sees_nothing_whatever_it_asks_of_nvidias_runtime(
    bed: Bed, installed: None, stories: str
) -> None:
    asks = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    plain = {**objects.container("main"), **asks}
    for where in (stories, installing.unmanaged(bed, stories)):
        bed.apply(objects.pod("nosy", where, plain))
        bed.running("nosy", where)
    script = "echo $NVIDIA_VISIBLE_DEVICES; ls /dev/dragoon /dev/nvidia* 2>/dev/null; true"
    assert bed.run_in("nosy", stories, "main", "sh", "-c", script).split() == ["void"]
    # Where the namespace says so, the policy leaves the variable alone; here nobody reads it.
    assert bed.run_in("nosy", f"{stories}-own", "main", "sh", "-c", script).split() == ["all"]


def test_an_upgrade_loses_no_pod_that_comes_goes_or_stays(
    bed: Bed, helm: Helm, installed: None, namespace: str, tmp_path: Path
) -> None:
    newer = helm.changed("0.1.1", tmp_path)
    installing.add_column(newer / "files/deploy/crds/gangs.yaml", "Upgraded")
    bed.apply(
        objects.template("one", namespace, objects.claim_spec()),
        objects.pod("stays", namespace, objects.container("main", "gpu"), templates={"gpu": "one"}),
        installing.crowd(namespace),
    )
    before = bed.running("stays", namespace)
    until(
        "the crowd comes and goes",
        lambda: installing.crowd_status(bed, namespace).get("succeeded", 0) > 2,
    )
    old = installing.uids(bed, "plugin")
    done_before = installing.crowd_status(bed, namespace)["succeeded"]
    helm.upgrade(
        helm.package(newer),
        {**installing.values(), "config": {**installing.FORMS, "logLevel": "debug"}},
    )
    done_meanwhile = installing.crowd_status(bed, namespace)["succeeded"] - done_before
    until("the old plugins are gone", lambda: not installing.uids(bed, "plugin") & old)
    status = until(
        "the crowd goes on with the new plugins",
        lambda: (
            found
            if (found := installing.crowd_status(bed, namespace)).get("succeeded", 0)
            > done_before + done_meanwhile + 2
            else None
        ),
    )
    assert done_meanwhile > 0
    assert not status.get("failed")
    assert installing.restarts(bed) == 0
    after = bed.running("stays", namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    refused = [
        event["note"]
        for event in bed.items("events.events.k8s.io", "-n", namespace)
        if event["reason"] == "FailedPrepareDynamicResources"
    ]
    assert refused == []
    assert "Upgraded" in installing.columns(bed)
    bed.figures.append(f"pods that came and went during an upgrade: {done_meanwhile}")


def test_helm_test_passes_and_leaves_no_rights_behind(
    bed: Bed, helm: Helm, installed: None
) -> None:
    said = helm.test()
    assert "Phase:          Succeeded" in said
    assert "gang: " in said
    assert bed.get("clusterrole", "dragoon-check") is None


def test_what_uninstall_leaves_holds_nobody(
    bed: Bed, helm: Helm, package: Path, installed: None, namespace: str
) -> None:
    bed.apply(
        objects.template("one", namespace, objects.claim_spec()),
        objects.pod("holds", namespace, objects.container("main", "gpu"), templates={"gpu": "one"}),
        installing.lonely_member(namespace),
    )
    bed.running("holds", namespace)
    assert installing.gates(bed, namespace) == ["dragoon.dev/gang"]

    with pytest.raises(ClusterError, match="hold devices") as refused:
        helm.uninstall()
    assert "holds" in str(refused.value)
    assert bed.get("daemonset", "dragoon-plugin", SYSTEM) is not None

    (held,) = (one["metadata"]["name"] for one in bed.claims_of("holds", namespace))
    bed.kubectl("delete", "pod", "holds", "-n", namespace)
    # Kubernetes takes the devices back when the pod has gone.
    bed.gone("resourceclaim", held, namespace)
    said = helm.uninstall()
    for stays in ("gangs.dragoon.dev", f"plugins/{DRIVER_NAME}", "namespace"):
        assert stays in said
    assert "pods let go: 1" in said
    assert installing.gates(bed, namespace) == []
    assert installing.finalizers(bed, namespace) == []
    # Pods of what was removed end after it.
    settles(lambda: installing.left_in_cluster(bed), ["customresourcedefinition/gangs.dragoon.dev"])
    for node in bed.cluster.nodes:
        settles(partial(installing.left_on_node, node), [])


def test_nodes_without_a_driver_are_ready_and_publish_nothing(
    bed: Bed, helm: Helm, package: Path
) -> None:
    """For real GPUs, as by default: privileged, with the node's folders, on what was left before.

    An administrator's library is copied to the nodes, GPUs or not; here any file stands for it.
    """
    if bed.get("daemonset", "dragoon-plugin", SYSTEM) is not None:
        helm.uninstall()
    library = installing.some_library()
    helm.install(package, {"image": local_image(), "hami": installing.hami(library)})
    for node in bed.cluster.nodes:
        copied = Path(node.kubelet_root, "plugins", DRIVER_NAME, "library/libvgpu.so")
        assert copied.read_bytes() == library.read_bytes()
    (plugin, *_) = bed.items("pods", "-n", SYSTEM, "-l", "app.kubernetes.io/component=plugin")
    name = plugin["metadata"]["name"]
    assert plugin["spec"]["containers"][0]["securityContext"]["privileged"] is True
    assert bed.items("resourceslices") == []
    # Commands by hand have the settings of the pod: the host's folders and its kubelet.
    check = ("dragoon", "check", "--category", "kubelet", "--fail-on", "never", "-o", "json")
    results = json.loads(bed.run_in(name, SYSTEM, "plugin", *check))["items"]
    assert results
    assert [one for one in results if one["state"] != "ok"] == []
