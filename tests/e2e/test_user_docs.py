"""What the pages tell people to apply and to type, on a real cluster with simulated GPUs."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoon import semver
from dragoon.publish.floor import floor
from testbed import manifests, version
from testbed.bed import Bed, is_running
from testbed.waiting import until
from tests.docs import objects
from tests.docs.blocks import Block, commands, is_shown
from tests.docs.running import printed
from tests.e2e.gangs import Gangs, devices, is_allocated, is_gated
from tests.e2e.standing import all_forms

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

_VERSION = version.chosen()
needs_forms = pytest.mark.skipif(
    not floor(_VERSION).forms, reason=f"{_VERSION} has whole GPUs only"
)
needs_gangs = pytest.mark.skipif(
    semver.parse(_VERSION) < semver.parse("1.37.0"), reason=f"{_VERSION} has no gangs"
)


@pytest.fixture(scope="module")
def forms(bed: Bed) -> Iterator[None]:
    """A node that publishes all forms.

    Afterwards the others stay for minutes, tainted: so this file's name puts it behind the tests
    that count devices.
    """
    with all_forms(bed):
        yield


@pytest.fixture
def place(bed: Bed, namespace: str, tmp_path: Path) -> Path:
    """A folder in which the pages' commands work: its manifests are for simulated GPUs."""
    folder = tmp_path / "docs/manifests"
    folder.mkdir(parents=True)
    for file in manifests.FOLDER.iterdir():
        text = yaml.safe_dump_all(manifests.tried(manifests.read(file.name), namespace))
        (folder / file.name).write_text(text)
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copy(bed.cluster.environment()["KUBECONFIG"], kubeconfig)
    bed.kubectl(
        *("--kubeconfig", str(kubeconfig), "config", "set-context", "--current"),
        f"--namespace={namespace}",
    )
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(bed.cluster.state.programs["kubectl"])
    return tmp_path


def _pages() -> list[Path]:
    return sorted({one.page for one in objects.of("console cluster")})


@pytest.mark.parametrize("page", _pages(), ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_shows(
    bed: Bed, namespace: str, place: Path, page: Path
) -> None:
    for block in (one for one in objects.of("console cluster") if one.page == page):
        for command in commands(block):
            found = printed(
                command.text,
                place,
                place / "bin",
                KUBECONFIG=str(place / "kubeconfig"),
                KUBECACHEDIR=str(place / "cache"),
                NO_PROXY="*",
            )
            assert is_shown(command.output, found), f"$ {command.text}\n{found}"


@needs_gangs
def test_the_api_server_takes_every_manifest_of_the_pages(gangs: Gangs) -> None:
    """Strictly: a field that does not exist is refused. The CRD of gangs is installed."""
    bed, namespace = gangs.bed, gangs.namespace
    refused: list[str] = []
    for block in (*objects.plain(), *objects.of("yaml shape")):
        refused += _refused(bed, namespace, block)
    assert refused == []


def _refused(bed: Bed, namespace: str, block: Block) -> Iterator[str]:
    for one in objects.known(block):
        whole = {**one, "metadata": {**one["metadata"], "namespace": namespace}}
        if one["kind"] == "DeviceClass":
            del whole["metadata"]["namespace"]
        for container in (one.get("spec") or {}).get("containers") or ():
            container.setdefault("image", "none")  # a patch of Argo's names none
        done = subprocess.run(
            [
                *(bed.cluster.state.programs["kubectl"], "create"),
                *("--dry-run=server", "--validate=strict", "-f", "-"),
            ],
            input=json.dumps(whole),
            env=bed.cluster.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            yield f"{block.where}: {done.stderr.strip()}"


@pytest.mark.parametrize(
    ("story", "count"), [("one-gpu", 1), ("at-least-40gb", 1), ("linked-pair", 2)]
)
def test_the_stories_of_whole_gpus_run(bed: Bed, namespace: str, story: str, count: int) -> None:
    name = _applied(bed, namespace, story)
    marked, named = bed.devices_seen(name, namespace, "main")
    assert len(marked) == count
    assert marked == named
    if count > 1:
        assert len(_domains(bed, name, namespace)) == 1


@needs_forms
@pytest.mark.usefixtures("forms")
def test_the_story_of_a_share_runs_with_its_limits_in_the_claim(bed: Bed, namespace: str) -> None:
    name = _applied(bed, namespace, "ten-gib")
    (claim,) = bed.items("resourceclaims", "-n", namespace)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["consumedCapacity"] == {"memory": "10Gi", "cores": "25"}
    assert len(bed.devices_seen(name, namespace, "main")[0]) == 1


@needs_forms
@pytest.mark.usefixtures("forms")
def test_the_story_of_a_mig_instance_runs_with_an_instance(bed: Bed, namespace: str) -> None:
    _applied(bed, namespace, "two-slices")
    (claim,) = bed.items("resourceclaims", "-n", namespace)
    ((_, device),) = devices(claim)
    assert "-mig-2g20gb-" in device


@needs_gangs
def test_the_story_of_eight_by_eight_holds_nothing_where_it_does_not_fit_and_runs_where_it_does(
    gangs: Gangs,
) -> None:
    """Two nodes have room for two pods: of the same manifest with a smaller number."""
    template, job = manifests.tried(manifests.read("eight-by-eight.yaml"), gangs.namespace)
    gangs.bed.apply(template, job)
    gangs.waits("train", "NoRoom", "2 of 8")
    assert len(gangs.pods("train")) == 8
    assert all(map(is_gated, gangs.pods("train")))
    assert not any(map(is_allocated, gangs.claims("train")))
    gangs.ends("train")

    job["spec"] |= {"completions": 2, "parallelism": 2}
    gangs.bed.apply(job)
    members = gangs.running("train", 2)
    assert len({one["spec"]["nodeName"] for one in members}) == 2
    assert [len(list(devices(claim))) for claim in gangs.claims("train")] == [8, 8]
    gangs.ends("train")


def _applied(bed: Bed, namespace: str, story: str) -> str:
    """The name of the story's pod, once it runs."""
    made = manifests.tried(manifests.read(f"{story}.yaml"), namespace)
    bed.apply(*made)
    (name,) = (one["metadata"]["name"] for one in made if one["kind"] == "Pod")
    until(f"pod {name} runs", partial(_is_there, bed, name, namespace))
    return str(name)


def _is_there(bed: Bed, name: str, namespace: str) -> bool:
    found = bed.get("pod", name, namespace)
    return found is not None and is_running(found)


def _domains(bed: Bed, pod: str, namespace: str) -> set[str]:
    """The NVLink domains of the devices of a pod's only claim."""
    found: Any = bed.get("pod", pod, namespace)
    (claim,) = bed.items("resourceclaims", "-n", namespace)
    names = {name for _, name in devices(claim)}
    return {
        device["attributes"]["nvlinkDomain"]["string"]
        for piece in bed.slices(found["spec"]["nodeName"])
        for device in piece["spec"].get("devices") or ()
        if device["name"] in names
    }
