"""The history of a run: complete, in the order of the revisions, and one namespace at a time."""

import asyncio
import json
from pathlib import Path

from dragoon.kube.port import CLAIMS, PODS, Object, Resource
from racecampaign.history import Event, History, write


def _event(resource: Resource, revision: int, kind: str = "ADDED", space: str = "team") -> Event:
    meta = {"namespace": space, "name": "a", "uid": "a", "resourceVersion": str(revision)}
    body: Object = {"metadata": meta if kind != "BOOKMARK" else {"resourceVersion": str(revision)}}
    return Event.of(resource, kind, body)


def test_events_are_in_the_order_of_their_revisions() -> None:
    history = History()
    for event in (_event(PODS, 9), _event(PODS, 30), _event(CLAIMS, 2), _event(CLAIMS, 12)):
        history.add(event)
    assert [one.revision for one in history.take("team", 12)] == [2, 9, 12]


def test_a_history_is_of_one_namespace_and_without_bookmarks() -> None:
    history = History()
    history.add(_event(PODS, 1))
    history.add(_event(PODS, 2, space="other"))
    history.add(_event(PODS, 3, kind="BOOKMARK"))
    assert [one.revision for one in history.take("team", 9)] == [1]
    assert [one.revision for one in history.take("other", 9)] == [2]


async def test_it_is_complete_when_each_resource_was_seen_up_to_its_mark() -> None:
    history = History()
    waiting = asyncio.create_task(history.seen({PODS: 4, CLAIMS: 3}))
    for event in (_event(PODS, 5), _event(CLAIMS, 2)):
        history.add(event)
        await asyncio.sleep(0)
        assert not waiting.done()
    history.add(_event(CLAIMS, 7, kind="BOOKMARK"))
    async with asyncio.timeout(60):
        await waiting


def test_it_is_written_one_event_a_line_without_who_wrote_which_field(tmp_path: Path) -> None:
    event = _event(PODS, 5, kind="DELETED")
    event.object["metadata"]["managedFields"] = [{"manager": "somebody"}]
    file = tmp_path / "kept" / "history"
    write([event], file)
    (line,) = file.read_text().splitlines()
    told = json.loads(line)
    assert (told["revision"], told["kind"]) == (5, "DELETED")
    assert told["object"]["metadata"].keys() == {"namespace", "name", "uid", "resourceVersion"}
