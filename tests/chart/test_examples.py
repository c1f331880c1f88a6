"""The values beside neighbours: each file is rendered, and gives the paths and switches it is about."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.conftest import CHART, Object, Render

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EXAMPLES = CHART / "examples"
FILES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))
_OPERATOR = ("--api-versions", "monitoring.coreos.com/v1")


@pytest.fixture
def plugin(render: Render) -> Any:
    """The plugin's settings with the values of a file."""

    def of(name: str) -> tuple[Object, list[Object]]:
        found = render(*_OPERATOR, "--values", str(EXAMPLES / name))
        (config,) = (
            one
            for one in found
            if one["metadata"]["name"] == "dragoon-plugin" and one["kind"] == "ConfigMap"
        )
        settings: Object = yaml.safe_load(config["data"]["config.yaml"])
        return settings, found

    return of


@pytest.mark.parametrize("name", FILES)
def test_every_example_is_rendered_and_is_named_in_the_readme(plugin: Any, name: str) -> None:
    _, found = plugin(name)
    assert {"DaemonSet", "Deployment", "DeviceClass"} <= {one["kind"] for one in found}
    assert f"`{name}`" in (CHART / "README.md").read_text("utf-8")


def test_a_driver_that_a_container_brings_is_looked_for_in_its_folder(plugin: Any) -> None:
    for name, root in (
        ("gpu-operator.yaml", "/run/nvidia/driver"),
        ("gke.yaml", "/home/kubernetes/bin/nvidia"),
        ("host-driver.yaml", "/"),
    ):
        settings, _ = plugin(name)
        assert settings["driverRoot"] == root
        assert settings["hostRoot"] == "/host"
    assert plugin("host-driver.yaml")[0]["nvidiaCtk"] == "/host/usr/bin/nvidia-ctk"
    assert "nvidiaCtk" not in plugin("gpu-operator.yaml")[0]


def test_simulated_gpus_need_no_privilege_and_nothing_of_the_host(plugin: Any) -> None:
    settings, found = plugin("simulated.yaml")
    assert settings["simulate"] == "dgx-h100"
    daemon = next(one for one in found if one["kind"] == "DaemonSet")
    assert "privileged" not in json.dumps(daemon)
    paths = {
        one["hostPath"]["path"]
        for one in daemon["spec"]["template"]["spec"]["volumes"]
        if "hostPath" in one
    }
    assert paths == {
        *("/var/lib/kubelet/plugins/gpu.dragoon.dev", "/var/lib/kubelet/plugins_registry"),
        "/var/run/cdi",
    }


def test_critical_pods_get_their_quota_where_a_cloud_wants_one(plugin: Any) -> None:
    _, found = plugin("gke.yaml")
    (quota,) = (one for one in found if one["kind"] == "ResourceQuota")
    (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    used = {
        one["spec"]["template"]["spec"]["priorityClassName"]
        for one in found
        if one["kind"] in {"DaemonSet", "Deployment"}
    }
    assert set(scope["values"]) == used


def test_a_service_monitor_finds_the_service_that_names_its_port(plugin: Any) -> None:
    _, found = plugin("dcgm-exporter.yaml")
    services = {one["metadata"]["name"]: one for one in found if one["kind"] == "Service"}
    monitors = [one for one in found if one["kind"] == "ServiceMonitor"]
    assert len(monitors) == len(services) == 2
    for monitor in monitors:
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = (
            one for one in services.values() if wanted <= one["metadata"]["labels"].items()
        )
        (port,) = service["spec"]["ports"]
        assert monitor["spec"]["endpoints"][0]["port"] == port["name"]
        assert monitor["metadata"]["labels"]["release"] == "prometheus"


@pytest.mark.parametrize(
    "file", sorted((EXAMPLES / "neighbours").glob("*.yaml")), ids=lambda file: file.stem
)
def test_nobody_else_gives_out_gpus_with_the_values_of_a_neighbour(file: Path) -> None:
    values = yaml.safe_load(file.read_text("utf-8"))
    giver = {"gpu-operator": ("devicePlugin",), "nvidia-dra-driver": ("resources", "gpus")}
    for key in giver[file.stem]:
        values = values[key]
    assert values == {"enabled": False}
    assert f"`neighbours/{file.name}`" in (CHART / "README.md").read_text("utf-8")
