"""Commands that read a cluster, and answers or files that no API server wrote.

More such answers: `tests/contract/kube/test_foreign_answers`; damaged fields of a saved cluster:
`tests/property/test_saved_clusters`.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoon.cli import exits, main
from dragoon.diagnose import saving
from tests.contract.kube.kubeconfigs import kubeconfig
from tests.contract.kube.wire import Answer, answering, wire
from tests.unit.diagnose.scenes import snapshot

Capture = pytest.CaptureFixture[str]

MANIFEST = str(Path(__file__).parents[3] / "docs/manifests/one-gpu.yaml")
OF_TRAIN = ("train", "-n", "default")

SAVED_TOO = (
    ("status",),
    ("status", "node/n1"),
    ("check", "--category", "api,gang"),
    ("map",),
    ("explain", "pod/train", "-n", "default"),
    ("explain", "gang/train", "-n", "default"),
    ("simulate", "-f", MANIFEST),
    ("gangs",),
    ("gangs", "show", *OF_TRAIN),
)
LIVE = (
    *SAVED_TOO,
    ("gangs", "make-room", *OF_TRAIN),
    ("gangs", "release", *OF_TRAIN),
    ("gangs", "release", "--all"),
    ("retire",),
    ("retire", "--check"),
    ("dump", "-o", "dump.tar.gz", "--kubelet-root", "/none", "--proc-root", "/none"),
)
SAVED = (*SAVED_TOO, ("devices",), ("lint", "-f", MANIFEST))


def items(*found: Any) -> dict[str, Any]:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(found)}


def pod(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "uid": "u", "resourceVersion": "7", **metadata}}


ODD_LISTS = {
    "an item is no object": (items(1), "`$.items[0]`"),
    "a name that is a number": (items(pod(name=5)), "`$.items[0].metadata.name`"),
    "a spec that is a number": (items({**pod(), "spec": 5}), "`$.items[0].spec`"),
    "a truncated list": (json.dumps(items(pod()))[:-9], "Input data was truncated"),
    "no text": (b"\xff\xfe\x00", "invalid character"),
}


def sending(body: Any) -> Answer:
    """A server that knows its version, and answers everything else so."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"})
        if isinstance(body, bytes):
            return web.Response(body=body, content_type="application/json")
        return await answering(body)(request)

    return answer


@pytest.mark.parametrize("odd", ODD_LISTS)
async def test_every_command_says_what_no_api_server_answers(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    body, told = ODD_LISTS[odd]
    async with wire(sending(body)) as server:
        there = str(kubeconfig(tmp_path / "there", {"server": server.url}))
        for words in LIVE:
            code = await asyncio.to_thread(main.run, [*words, "--kubeconfig", there])
            printed = capsys.readouterr()
            # It checks what there is: the version.
            known = exits.FINE if words[0] == "check" else exits.UNREACHABLE
            assert code == known, (words, printed)
            assert told in printed.out + printed.err, (words, printed)
            assert "the answer is no" in printed.out + printed.err, words


async def test_check_tells_that_a_dry_run_was_answered_with_an_object_without_a_spec(
    tmp_path: Path, capsys: Capture
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        made = {"kind": "ResourceSlice", "metadata": {"name": "x"}}
        return await sending(made if request.method == "POST" else items())(request)

    async with wire(answer) as server:
        there = str(kubeconfig(tmp_path / "there", {"server": server.url}))
        words = ["check", "--category", "api,gang", "--kubeconfig", there]
        code = await asyncio.to_thread(main.run, words)
    printed = capsys.readouterr()
    assert code in {exits.FINE, exits.FINDINGS}
    assert "the answer is no object of Kubernetes: spec is missing" in printed.out


def claims(*found: Any) -> dict[str, Any]:
    return {"kind": "ResourceClaimList", "apiVersion": "resource.k8s.io/v1", "items": list(found)}


ODD_FILES = {
    "an item is no object": (claims(1), "found 1, a Kubernetes object is a mapping"),
    "an item is null": (claims(None), "found None, a Kubernetes object is a mapping"),
    "items that are no list": ({**claims(), "items": "x"}, "items: found x, allowed is a list"),
    "a truncated list": (json.dumps(claims({"a": "b"}))[:-9].encode(), "line 1 of it: "),
    "no text": (b"\xff\xfe\x00", "no text in UTF-8"),
}


@pytest.mark.parametrize("odd", ODD_FILES)
def test_every_command_names_the_file_of_a_saved_cluster_that_is_none_and_ends_with_2(
    odd: str, tmp_path: Path, capsys: Capture
) -> None:
    saving.save(snapshot(), tmp_path / "saved")
    file = tmp_path / "saved/resourceclaims.json"
    body, told = ODD_FILES[odd]
    file.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
    for words in SAVED:
        code = main.run([*words, "--snapshot", str(file.parent)])
        printed = capsys.readouterr()
        assert code == exits.USAGE, (words, printed)
        assert f"error: {file}" in printed.err, (words, printed)
        assert told in printed.err, (words, printed)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"metadata": {"name": "c", "namespace": "default"}}, "default/c: spec: found nothing"),
        ({"metadata": {"name": 5}, "spec": {}}, "(without a name): metadata.name: found 5"),
        ({"metadata": {}, "spec": {}}, "(without a name): metadata.name: found nothing"),
        ({"spec": {}}, "(without a name): metadata: found nothing"),
    ],
)
def test_status_tells_which_object_of_a_saved_cluster_was_left_out_and_why(
    odd: Any, told: str, tmp_path: Path, capsys: Capture
) -> None:
    saving.save(snapshot(), tmp_path / "saved")
    (tmp_path / "saved/resourceclaims.json").write_text(json.dumps(claims(odd)))
    assert main.run(["status", "--snapshot", str(tmp_path / "saved")]) == exits.FINE
    printed = capsys.readouterr().out
    assert f"left out, as no API server stores it: ResourceClaim {told}" in printed
