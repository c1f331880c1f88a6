"""`dragoon status`, `check`, `explain` and `dump` on a real cluster: what is well and what is not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.bed import Bed
from testbed.objects import claim_spec, container, pod, template
from testbed.plugins import Plugin
from testbed.waiting import settles, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def dragoon(bed: Bed, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as an administrator gives it."""
    admin = bed.cluster.state.kubeconfigs["admin"]
    return subprocess.run(
        [sys.executable, "-m", "dragoon", *arguments, "--kubeconfig", admin],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def here(plugin: Plugin) -> tuple[str, ...]:
    """The options that say which node this is."""
    node = plugin.node
    return (
        *("--node-name", node.name, "--kubelet-root", node.kubelet_root),
        *("--cdi-root", node.cdi_folder, "--simulate-state", str(plugin.hardware.file)),
    )


def checked(bed: Bed, plugin: Plugin) -> dict[str, dict[str, Any]]:
    """Every check by its code, with the node's real containerd configuration."""
    runtime = str(Path(plugin.node.folder, "containerd.toml"))
    found = dragoon(bed, "check", *here(plugin), "--runtime-config", runtime, "-o", "json")
    assert found.returncode in {0, 1}, found.stderr
    return {one["code"]: one for one in json.loads(found.stdout)["items"]}


def errors(found: dict[str, dict[str, Any]]) -> set[str]:
    return {code for code, one in found.items() if one["state"] == "error"}


def test_a_node_that_is_well_has_no_error_and_damage_is_found(bed: Bed, namespace: str) -> None:
    bed.apply(
        template("one", namespace, claim_spec(1)),
        pod("user", namespace, container("c", "gpu"), templates={"gpu": "one"}),
    )
    plugin = bed.plugins[bed.running("user", namespace)["spec"]["nodeName"]]
    settles(lambda: errors(checked(bed, plugin)), set())
    before = checked(bed, plugin)
    made = {code for code, one in before.items() if one["state"] != "not checked"}
    assert {
        *("HOST001", "RUNTIME001", "RUNTIME002", "RUNTIME005", "KUBELET001", "KUBELET002"),
        *("API001", "API003", "API004", "API005", "API011", "STATE003", "STATE007", "STATE008"),
    } <= made

    (file,) = plugin.cdi_files()
    plugin.stop()
    try:
        content = file.read_bytes()
        file.unlink()
        assert {"KUBELET002", "STATE003"} <= errors(checked(bed, plugin))
        file.write_bytes(content)
    finally:
        plugin.start_and_wait()
    settles(lambda: errors(checked(bed, plugin)), set())


def test_a_missing_class_is_found_and_its_remedy_helps(bed: Bed) -> None:
    plugin = next(iter(bed.plugins.values()))
    class_ = bed.get("deviceclass", "sim.dragoon.dev")
    assert class_ is not None
    bed.kubectl("delete", "deviceclass", "sim.dragoon.dev")
    try:
        found = checked(bed, plugin)["API005"]
        assert found["state"] == "error"
        (problem,) = found["problems"]
        assert problem["next"] == "kubectl apply -f deviceclasses/sim.dragoon.dev.yaml"
    finally:
        root = Path(__file__).parents[2]
        bed.kubectl("apply", "-f", str(root / "deviceclasses/sim.dragoon.dev.yaml"))
    assert checked(bed, plugin)["API005"]["state"] == "ok"


def test_a_pod_that_waits_is_explained_with_a_code_live_and_from_a_dump(
    bed: Bed, namespace: str, tmp_path: Path
) -> None:
    bed.apply(
        template("nine", namespace, claim_spec(9)),
        pod("waits", namespace, container("c", "gpu"), templates={"gpu": "nine"}),
    )
    until("kube-scheduler has tried it", lambda: bed.unschedulable("waits", namespace))
    live = dragoon(bed, "explain", "pod/waits", "-n", namespace, "-o", "json")
    assert live.returncode == 1
    assert json.loads(live.stdout)["cause"]["code"] == "WAIT011"

    file = tmp_path / "dump.tar.gz"
    dumped = dragoon(bed, "dump", "-o", str(file), *here(next(iter(bed.plugins.values()))))
    assert (dumped.returncode, "not collected" in dumped.stderr) == (0, False), dumped.stderr
    saved = subprocess.run(
        [
            *(sys.executable, "-m", "dragoon", "explain", "pod/waits", "-n", namespace),
            *("-o", "json", "--snapshot", str(file)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert json.loads(saved.stdout)["cause"] == json.loads(live.stdout)["cause"]


def test_the_screen_counts_what_is_used(bed: Bed, namespace: str) -> None:
    def used() -> int:
        found = json.loads(dragoon(bed, "status", "-o", "json").stdout)
        return int(found["totals"]["whole"].get("used", 0))

    before = used()
    bed.apply(
        template("two", namespace, claim_spec(2)),
        pod("user", namespace, container("c", "gpu"), templates={"gpu": "two"}),
    )
    bed.running("user", namespace)
    assert used() == before + 2
