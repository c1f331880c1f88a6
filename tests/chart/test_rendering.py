"""What the chart installs: rights, hardening, paths, classes, policies; and what it refuses."""

import json
import re
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import msgspec
import pytest
import yaml

import chart_schema
from dragoon.app import permissions
from dragoon.app.config import load
from dragoon.app.controller_config import ControllerConfig
from dragoon.telemetry.endpoint import SELF_CALL_SECONDS
from tests.chart.conftest import CHART, IMAGE, Object, Render

# The first one builds Helm.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

REPOSITORY = CHART.parents[1]
VALUES = {
    "defaults": (),
    "simulated": ("--set", "simulate=dgx-h100"),
    "no gangs": ("--set", "gangs.enabled=false"),
    "hami": ("--set", "hami.image=registry.test/hami:1", "--set", f"hami.sha256={'a' * 64}"),
    "operator": (
        "--set",
        "driverRoot=/run/nvidia/driver",
        "--set",
        "nvidiaCtk=/usr/bin/nvidia-ctk",
    ),
    "elsewhere": ("--set", "kubeletRootDir=/data/kubelet", "--set", "cdiRoot=/etc/cdi"),
    "all on": (
        *("--set", "serviceMonitor.enabled=true", "--set", "networkPolicy.enabled=true"),
        *("--api-versions", "monitoring.coreos.com/v1", "--set", "criticalPodsQuota.enabled=true"),
        *("--set", "config.forms=whole\\,shared\\,mig", "--set", "controllerConfig.writers=64"),
    ),
    "bare": (
        *("--set", "deviceClasses.create=false", "--set", "kubeletsReadClaims=false"),
        *("--set", "admissionPolicies.voidVisibleDevices=false"),
        *("--set", "admissionPolicies.ownSlices=false"),
        *("--set", "admissionPolicies.opaqueConfig=false", "--set", "gangs.crd=false"),
        *("--set", "kueue.enabled=false"),
    ),
}


@pytest.fixture(params=VALUES)
def rendered(request: pytest.FixtureRequest, render: Render) -> list[Object]:
    return render(*VALUES[request.param])


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [found for found in objects if found["kind"] in kinds]


def pods(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """The specs of all pods that are made, with the name of what makes them."""
    for made in of_kind(objects, "DaemonSet", "Deployment", "Job", "Pod"):
        template = made["spec"].get("template", made)
        yield made["metadata"]["name"], template["spec"]


def containers(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    for name, spec in pods(objects):
        for one in (*spec.get("initContainers", ()), *spec["containers"]):
            yield f"{name}/{one['name']}", one


def test_every_container_has_its_resources_and_a_hardened_context(rendered: list[Object]) -> None:
    for name, one in containers(rendered):
        assert one["resources"]["requests"]["cpu"], name
        assert one["resources"]["limits"]["memory"], name
        context = one["securityContext"]
        assert context["readOnlyRootFilesystem"] is True, name
        if context.get("privileged"):
            assert name == "dragoon-plugin/plugin"
        else:
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"]["drop"] == ["ALL"], name


def test_a_probe_waits_for_what_the_process_has_to_say(rendered: list[Object]) -> None:
    """A busy node makes it slow; the kubelet's own patience is one second."""
    probed = [probe for _, one in containers(rendered) for probe in _probes(one)]
    assert probed
    assert all(probe["timeoutSeconds"] > SELF_CALL_SECONDS for probe in probed)


def test_a_plugin_that_is_only_slow_is_not_replaced_before_its_successor_is_there(
    render: Render,
) -> None:
    """A DaemonSet that surges ends an old pod that is not ready, whatever the new one is."""
    plugin = dict(containers(render()))["dragoon-plugin/plugin"]
    ready, alive = plugin["readinessProbe"], plugin["livenessProbe"]
    assert _patience(ready) >= _patience(alive)


def _probes(container: Object) -> list[Object]:
    return [setting for name, setting in container.items() if name.endswith("Probe")]


def _patience(probe: Object) -> int:
    """For how many seconds it may fail."""
    return int(probe["periodSeconds"]) * int(probe["failureThreshold"])


def test_only_the_plugin_on_real_gpus_is_privileged(render: Render) -> None:
    real = dict(containers(render()))
    simulated = dict(containers(render(*VALUES["simulated"])))
    assert real["dragoon-plugin/plugin"]["securityContext"]["privileged"] is True
    assert not any(one["securityContext"].get("privileged") for one in simulated.values())
    assert not any(spec.get("hostPID") for _, spec in pods(render(*VALUES["simulated"])))


def test_rights_are_exactly_those_that_the_code_declares(render: Render) -> None:
    declared = permissions.chart_roles("gpu.dragoon.dev")
    roles = of_kind(render(), "ClusterRole", "Role")
    found = {one["metadata"]["name"].removeprefix("dragoon-"): one["rules"] for one in roles}
    assert found == {name: one["rules"] for name, one in declared.items()}
    bindings = of_kind(render(), "ClusterRoleBinding", "RoleBinding")
    bound = {(one["roleRef"]["name"], one["subjects"][0]["name"]) for one in bindings}
    whom = {"kubelets": "system:nodes"}
    assert bound == {
        (f"dragoon-{name}", whom.get(one["component"], f"dragoon-{one['component']}"))
        for name, one in declared.items()
    }


def test_rights_of_a_hook_exist_only_while_it_runs(render: Render) -> None:
    when = {"dragoon-retire": "pre-delete,post-delete", "dragoon-check": "test"}
    for one in of_kind(render(), "ServiceAccount", "ClusterRole", "ClusterRoleBinding"):
        notes = one["metadata"].get("annotations") or {}
        assert notes.get("helm.sh/hook") == when.get(one["metadata"]["name"])
        if notes:
            assert "hook-succeeded" in notes["helm.sh/hook-delete-policy"]


def test_the_file_of_roles_is_what_the_code_declares() -> None:
    written = yaml.safe_load((CHART / "files/roles.yaml").read_text("utf-8"))
    assert written == permissions.chart_roles("gpu.dragoon.dev")


def test_what_is_switched_off_is_not_installed(render: Render) -> None:
    bare = render(*VALUES["bare"])
    assert not of_kind(bare, "DeviceClass", "CustomResourceDefinition")
    names = {one["metadata"]["name"] for one in bare}
    assert "dragoon-kubelets-read-claims" not in names
    assert "dragoon-controller-kueue" not in names
    policies = of_kind(bare, "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
    assert {one["metadata"]["name"].partition(".")[0] for one in policies} == {
        "gate",
        "claim-finalizer",
        "gang-only",
    }
    without = render(*VALUES["no gangs"])
    assert not of_kind(without, "Deployment", "CustomResourceDefinition")
    assert not any("controller" in one["metadata"]["name"] for one in without)


def test_classes_are_those_of_the_repository(render: Render) -> None:
    files = sorted((REPOSITORY / "deviceclasses").glob("*.yaml"))
    expected = [yaml.safe_load(file.read_text("utf-8")) for file in files]
    assert of_kind(render(), "DeviceClass") == expected


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ((), "gpu.dragoon.dev"),
        (("--set", "driverName=gpu.example.org"), "gpu.example.org"),
        (("--set", "simulate=dgx-h100"), "sim.dragoon.dev"),
    ],
)
def test_whole_gpus_can_be_counted_under_a_name_of_the_administrator(
    render: Render, more: tuple[str, ...], name: str
) -> None:
    counted = ("--set", "deviceClasses.extendedResourceName=nvidia.com/gpu")
    found = {
        one["metadata"]["name"]: one["spec"]
        for one in of_kind(render(*counted, *more), "DeviceClass")
    }
    assert found[name].pop("extendedResourceName") == "nvidia.com/gpu"
    plain = of_kind(render(*more), "DeviceClass")
    assert found == {one["metadata"]["name"]: one["spec"] for one in plain}


@pytest.mark.parametrize("name", ["gpu", "nvidia.com/", "/gpu", "nvidia.com/gpu all", "A.b/gpu"])
def test_a_name_that_is_no_extended_resource_is_refused(
    template: Callable[..., CompletedProcess[str]], name: str
) -> None:
    done = template(*IMAGE, "--set", f"deviceClasses.extendedResourceName={name}")
    assert done.returncode != 0
    assert "extendedResourceName" in done.stderr


def test_another_driver_name_stands_everywhere(render: Render) -> None:
    found = render("--set", "driverName=gpu.example.org")
    assert "gpu.dragoon.dev" not in json.dumps(
        of_kind(found, "ClusterRole", "ConfigMap", "DaemonSet", "ValidatingAdmissionPolicy")
    )
    (gpu,) = [one for one in of_kind(found, "DeviceClass") if "gpu." in one["metadata"]["name"]]
    assert gpu["metadata"]["name"] == "gpu.example.org"


def test_every_path_of_the_kubelet_comes_from_one_value(render: Render) -> None:
    found = render(*VALUES["elsewhere"])
    ((_, spec), *_) = pods(of_kind(found, "DaemonSet"))
    paths = {one["hostPath"]["path"] for one in spec["volumes"] if "hostPath" in one}
    assert {"/data/kubelet/plugins/gpu.dragoon.dev", "/data/kubelet/plugins_registry"} <= paths
    assert "/etc/cdi" in paths
    assert "/var/lib/kubelet" not in json.dumps(found)
    assert "/var/run/cdi" not in json.dumps(found)


def test_the_processes_accept_their_config_files(rendered: list[Object], tmp_path: Any) -> None:
    for one in of_kind(rendered, "ConfigMap"):
        file = tmp_path / f"{one['metadata']['name']}.yaml"
        file.write_text(one["data"]["config.yaml"], "utf-8")
        if one["metadata"]["name"].endswith("-plugin"):
            assert load({"config": str(file), "node_name": "n"}, {}).driver_name
        else:
            written = yaml.safe_load(one["data"]["config.yaml"])
            assert msgspec.convert(written, ControllerConfig, strict=False)


def test_the_schema_has_the_settings_as_the_code_has_them() -> None:
    text = chart_schema.FILE.read_text("utf-8")
    assert chart_schema.written(text) == text, "run hack/chart-schema"


def test_an_older_kubernetes_gets_what_works_there(render: Render) -> None:
    found = render(
        *("--set", "gangs.enabled=false", "--set", "admissionPolicies.voidVisibleDevices=false"),
        kubernetes="1.35.4",
    )
    assert of_kind(found, "DaemonSet")
    assert not of_kind(found, "MutatingAdmissionPolicy")
    newer = render("--set", "gangs.enabled=false", kubernetes="1.36.4")
    policies = of_kind(newer, "MutatingAdmissionPolicy")
    assert all("void-visible-devices" in one["metadata"]["name"] for one in policies)
    assert policies


def test_the_page_says_what_to_set_for_an_older_kubernetes(render: Render) -> None:
    page = (REPOSITORY / "docs/compatibility.md").read_text("utf-8")
    rows = re.findall(r"^\| (1\.\d+(?:\.\d+)?)[^|]*\|[^|]*\|([^|]*)\|", page, re.MULTILINE)
    assert [version for version, _ in rows] == ["1.35", "1.36.0", "1.36.2", "1.36.4", "1.37"]
    for version, values in rows:
        wanted = re.findall(r"`([^`]+)`", values)
        kubernetes = version if version.count(".") == 2 else f"{version}.0"
        flags = [part for value in wanted for part in ("--set", value)]
        assert of_kind(render(*flags, kubernetes=kubernetes), "DaemonSet"), version


Template = Callable[..., CompletedProcess[str]]

REFUSALS = {
    "no image": ((), {}, ("image.repository is empty", "--set image.repository=")),
    "old": ((*IMAGE,), {"kubernetes": "1.35.4"}, ("gangs need", "--set gangs.enabled=false")),
    "gangs": ((*IMAGE,), {"kubernetes": "1.36.4"}, ("1.37", "--set gangs.enabled=false")),
    "spaces": ((*IMAGE, "--set", "kubeletRootDir=/a b"), {}, ("kubeletRootDir", "without spaces")),
    "relative": ((*IMAGE, "--set", "cdiRoot=cdi"), {}, ("cdiRoot", "absolute path")),
    "long": ((*IMAGE, "--set", f"driverName={'a' * 64}"), {}, ("64 characters", "driverName=")),
    "unknown": ((*IMAGE, "--set", "kubletRootDir=/x"), {}, ("kubletRootDir",)),
    "unknown setting": ((*IMAGE, "--set", "config.form=mig"), {}, ("form",)),
    "library": ((*IMAGE, "--set", "hami.image=x"), {}, ("hami.sha256", "--set hami.sha256=")),
    "slash": ((*IMAGE, "--set", "kubeletRootDir=/data/"), {}, ("slash", "--set kubeletRootDir=")),
    "counters": (
        (
            *IMAGE,
            *("--set", "gangs.enabled=false", "--set", "config.forms=whole\\,mig"),
        ),
        {"kubernetes": "1.36.1"},
        ("139034", "--set config.forms=whole"),
    ),
    "floor": ((*IMAGE,), {"kubernetes": "1.34.0"}, ("kubeVersion", "1.35.0")),
    "monitors": ((*IMAGE, "--set", "serviceMonitor.enabled=true"), {}, ("Prometheus", "--set")),
    "bad setting": ((*IMAGE, "--set", "config.logLevel=loud"), {}, ("logLevel",)),
    "namespace": ((*IMAGE,), {"namespace": "default"}, ("namespace default", "--namespace")),
}


@pytest.mark.parametrize("wrong", REFUSALS)
def test_values_that_cannot_work_are_refused_with_the_flag_to_set(
    template: Template, wrong: str
) -> None:
    arguments, more, told = REFUSALS[wrong]
    done = template(*arguments, **more)
    assert done.returncode != 0
    for text in told:
        assert text in done.stderr


def _sorted(rules: Any) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in rules)
