"""A Gang whose status somebody edited: what it says is kept, or counts as nothing; others go on."""

import base64
import contextlib
import copy
import json
import zlib
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.allocator.usage import holds_of
from dragoon.api.gang_plan import unpack
from dragoon.errors import InvalidInputError
from dragoon.gang import asking
from dragoon.gang.copies import Copies
from dragoon.gang.questions import Questions
from dragoon.gang.waiting.reserving import ReserveSettings, Waiting, decide
from dragoon.gang.world import Listener, World
from dragoon.kube.memory import MemoryApi
from tests.unit.gang.records_for_tests import gang, pod

Raw = dict[str, Any]

NOW = datetime(2026, 11, 29, 20, 0, tzinfo=UTC)
LONG_AGO = "2026-11-29T19:00:00Z"
_ODD: st.SearchStrategy[Any] = st.sampled_from(
    (
        *(None, 0, -1, 3, 2**63, 1.5, True, "", "text", "1e400", "1e3000", "9" * 3_000),
        *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-29T19:00:00"),
        *([], [1], ["a"], [None], {}, {"a": 1}, [{}], [[]]),
    )
)
_RESULT: Raw = {
    "request": "g",
    "driver": "d",
    "pool": "p",
    "device": "gpu-0",
    "shareID": "s",
    "consumedCapacity": {"memory": "1Gi"},
    "tolerations": [{"key": "k"}],
    "adminAccess": False,
}
_CLAIMS: list[Raw] = [
    {"name": name, "uid": f"u-{name}", "allocation": {"devices": {"results": [_RESULT]}}}
    for name in ("a", "b")
]
_POOLS: list[Raw] = [{"driver": "d", "pool": "p"}]
_MEMBER: Raw = {"pod": "a", "uid": "pod-a", "node": "n0", "claims": ["a"]}
_HELD: Raw = {"pod": "b", "uid": "pod-b", "node": "n0", "pools": [0], "vacated": LONG_AGO}
_STATUS: Raw = {
    "phase": "Waiting",
    "missingSince": LONG_AGO,
    "completeSince": LONG_AGO,
    "avoided": [{"node": "n0", "until": LONG_AGO}],
    "plan": {
        "version": 1,
        "serial": 1,
        "step": "Commit",
        "since": LONG_AGO,
        "fenced": LONG_AGO,
        "waitUntil": LONG_AGO,
        "repaired": LONG_AGO,
        "pools": _POOLS,
        "members": [_MEMBER],
        "held": [_HELD],
    },
    "reservation": {"since": LONG_AGO, "pools": _POOLS, "nodes": ["n0"]},
}


@st.composite
def odd(draw: st.DrawFn, whole: Any) -> Any:
    """The whole with one or two parts replaced by something else, or as it is."""
    found = copy.deepcopy(whole)
    for _ in range(draw(st.integers(0, 2))):
        place: Any = [found]
        key: Any = 0
        while isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 5)):
            place = place[key]
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys))
        if place[key] is not found:
            place[key] = copy.deepcopy(draw(_ODD))
    return found


def packed(claims: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(claims).encode())).decode()


@settings(max_examples=300, deadline=None)
@given(odd(_STATUS), odd(_CLAIMS), st.sampled_from(("plan", "reservation")))
def test_what_somebody_edited_keeps_no_other_gang_from_its_plan(
    status: Raw, claims: Any, only: str
) -> None:
    for part in ("plan", "reservation"):
        if isinstance(status.get(part), dict):
            status[part].setdefault("packed", packed(claims))
    status.pop("plan" if only == "reservation" else "reservation", None)
    raw = {
        "metadata": {"namespace": "other", "name": "g", "uid": "gang-g", "resourceVersion": "9"},
        "spec": {"size": 1},
        "status": status,
    }
    world = scene(raw)
    questions = Questions(world)
    (edited,) = world.copies.gangs.values()
    own = gang("own")
    questions.snapshot(own)
    questions.open_to(own, [pod("x")], NOW)
    questions.open_to_workload("w", 0, NOW)
    list(asking.open_to(own.uid, own.name, world.copies.gangs.values()))
    kept = questions.keeping.kept(edited, NOW)
    assert kept is None or edited.status.reservation is not None
    found = decide([Waiting(edited, 0, 1, has_no_room=True)], NOW, ReserveSettings())
    assert {one.uid for one in (*found.ending, *found.starting)} <= {edited.uid}


_AMOUNTS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,3})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,20})?"),
    _ODD,
)


@settings(max_examples=300)
@given(_AMOUNTS, odd(_CLAIMS))
def test_of_what_is_unpacked_is_known_what_it_holds(amount: Any, claims: Any) -> None:
    """Who reads a journal relies on it: an amount that cannot be read would fail everybody."""
    with contextlib.suppress(AttributeError, IndexError, KeyError, TypeError):
        claims[0]["allocation"]["devices"]["results"][0]["consumedCapacity"]["memory"] = amount
    try:
        found = unpack(packed(claims))
    except InvalidInputError:
        return
    for one in found:
        holds_of(one.allocation, one.name)


def scene(edited: Raw) -> World:
    """A cluster with a Gang, and with a node that has two devices."""
    world = World(
        Copies(MemoryApi()), Listener(lambda _key: None, lambda _freed: None, lambda: None)
    )
    spec = {"driver": "d", "nodeName": "n0", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    world.state.put_slice({"metadata": {"name": "s"}, "spec": {**spec, "pool": pool}})
    world.copies.gangs.observe(edited)
    return world
