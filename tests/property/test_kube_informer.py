"""Whatever happens to the server and the connection, the copy ends equal to the server.

And handlers see for every key: added, updated any number of times, deleted, and so on, each with
the value that the one before left.
"""

import asyncio
import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.errors import ApiGoneError, DragoonError
from dragoon.kube.informer import Informer
from dragoon.kube.memory import MemoryApi
from dragoon.kube.mirror import Change, Key
from dragoon.kube.port import NODES, Object

NAMES = st.sampled_from(["a", "b", "c"])
WRITES = [
    "create",
    "create and observe",
    "update",
    "update and observe",
    "delete",
    "hide",
    "show",
]
STEPS = st.one_of(
    st.tuples(st.sampled_from(WRITES), NAMES),
    st.tuples(st.sampled_from(["cut", "end", "compact", "bookmark", "hold", "clear"]), st.none()),
    st.tuples(st.sampled_from(["fail", "gone", "lose"]), st.sampled_from(["list", "watch"])),
    st.tuples(st.just("turns"), st.integers(1, 30)),
)


class Journal:
    """Replays the changes of a handler and refuses an illegal one."""

    def __init__(self) -> None:
        self.model: dict[Key, Object] = {}
        self.faults: list[str] = []

    def __call__(self, change: Change[Object]) -> None:
        if change.old is None and change.new is None:
            self.faults.append(f"empty change of {change.key}")
        if self.model.get(change.key) != change.old:
            self.faults.append(f"{change.key}: old value differs from the last one told")
        if change.old is not None and change.new is not None:
            before, after = change.old["metadata"], change.new["metadata"]
            if before["uid"] != after["uid"]:
                self.faults.append(f"{change.key}: update across two objects")
            if int(before["resourceVersion"]) >= int(after["resourceVersion"]):
                self.faults.append(f"{change.key}: update went back")
        if change.new is None:
            self.model.pop(change.key, None)
        else:
            self.model[change.key] = change.new


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def write(api: MemoryApi, informer: Informer[Object], verb: str, name: str) -> None:
    """One write. Some fail, such as creating what is there."""
    match verb:
        case "create":
            await api.create(NODES, {"metadata": {"name": name, "labels": {"show": "1"}}})
        case "create and observe":
            body = {"metadata": {"name": name, "labels": {"show": "1"}}}
            informer.observe(await api.create(NODES, body))
        case "update" | "update and observe":
            patch = {"metadata": {"annotations": {"n": api.resource_version}}}
            written = await api.patch(NODES, name, patch)
            if verb != "update" and written["metadata"]["labels"].get("show"):
                informer.observe(written)
        case "hide" | "show":
            value = "1" if verb == "show" else None
            await api.patch(NODES, name, {"metadata": {"labels": {"show": value, "k": "1"}}})
        case "delete":
            await api.delete(NODES, name)


def disturb(api: MemoryApi, verb: str, call: str) -> None:
    match verb:
        case "cut":
            api.faults.cut_watches()
        case "end":
            api.faults.end_watches()
        case "compact":
            api.compact()
        case "bookmark":
            api.bookmark()
        case "fail":
            api.faults.fail(verb=call)
        case "gone":
            api.faults.fail(verb=call, error=lambda: ApiGoneError("too old", status=410))
        case "lose":
            api.faults.lose_answer(verb=call)
        case "hold":
            api.faults.hold_answer(verb="list")
        case "clear":
            api.faults.clear()


async def play(steps: list[tuple[str, Any]]) -> None:
    api = MemoryApi(history=4)
    await api.create(NODES, {"metadata": {"name": "a", "labels": {"show": "1"}}})
    journal = Journal()
    informer: Informer[Object] = Informer(
        api, NODES, labels="show", sleep=lambda _delay: asyncio.sleep(0)
    )
    informer.subscribe(journal)
    task = asyncio.create_task(informer.run())
    for verb, subject in steps:
        if verb == "turns":
            await turns(subject)
        elif verb in WRITES:
            with contextlib.suppress(DragoonError):
                await write(api, informer, verb, subject)
        else:
            disturb(api, verb, subject)
    api.faults.clear()
    truth = {
        Key("", found["metadata"]["name"]): found
        for found in (await api.list(NODES, labels="show")).items
    }
    async with asyncio.timeout(60):
        while dict(informer.items()) != truth:  # noqa: ASYNC110 - equality has no event
            await asyncio.sleep(0)
        await turns(50)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert dict(informer.items()) == truth
    assert journal.model == truth
    assert not journal.faults


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_the_copy_converges_and_handlers_see_legal_sequences(
    steps: list[tuple[str, Any]],
) -> None:
    asyncio.run(play(steps))
