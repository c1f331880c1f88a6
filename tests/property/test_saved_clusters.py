"""A saved cluster is a file of anybody: whatever is in it, no command fails over it."""

import asyncio
import copy
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoon.cli import exits, main
from dragoon.diagnose import saving
from dragoon.diagnose.gathering import gather
from tests.scenario.damage import cluster_world

MANIFEST = str(Path(__file__).parents[2] / "docs/manifests/one-gpu.yaml")

Place = tuple[str | int, ...]
"""The file, the number of the object in it, and the way to the field."""

GONE = "<gone>"
WRONG: tuple[Any, ...] = (
    *(GONE, None, "", "x", 0, -1, 3.5, True, 2**70, "9" * 400, "1e400"),
    *([], {}, [None], ["x"], [[]], {"x": "y"}),
)


@cache
def files() -> dict[str, Any]:
    """What is saved of a cluster that is well."""

    async def saved() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            world = await cluster_world.built(Path(folder))
        return saving.contents(await gather(world.api, source="a test"))

    return asyncio.run(saved())


@cache
def places() -> tuple[Place, ...]:
    return tuple(
        (name, number, *way)
        for name, content in files().items()
        for number, item in enumerate(content.get("items", ()))
        for way in ways(item)
        if way
    )


def ways(found: Any, way: Place = ()) -> Iterator[Place]:
    """Every way into a value."""
    yield way
    if isinstance(found, dict):
        for name, one in found.items():
            yield from ways(one, (*way, name))
    elif isinstance(found, list):
        for number, one in enumerate(found):
            yield from ways(one, (*way, number))


def put(target: dict[str, Any], place: Place, value: Any) -> None:
    """Writes a value there; nothing where an earlier one has taken the way."""
    name, number, *way = place
    found: Any = target[str(name)]["items"][number]
    try:
        for step in way[:-1]:
            found = found[step]
        if value == GONE:
            del found[way[-1]]
        else:
            found[way[-1]] = value
    except (KeyError, IndexError, TypeError):
        return


DAMAGES = st.deferred(
    lambda: st.lists(
        st.tuples(st.sampled_from(places()), st.sampled_from(WRONG)), min_size=1, max_size=3
    )
)


@given(damages=DAMAGES)
@settings(max_examples=15)
def test_no_command_takes_a_file_of_anybody_for_a_fault_of_its_own(
    damages: list[tuple[Place, Any]],
) -> None:
    damaged = copy.deepcopy(files())
    for place, value in damages:
        put(damaged, place, copy.deepcopy(value))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in damaged.items():
            (Path(folder) / name).write_text(json.dumps(content))
        for words in (
            *(["status"], ["status", "node/n1"], ["check"], ["devices"], ["map", "-o", "json"]),
            *(["explain", "claim/has"], ["explain", "gang/train"], ["explain", "pod/train-0"]),
            *(["gangs"], ["gangs", "show", "train"], ["lint", "-f", MANIFEST]),
        ):
            code = main.run([*words, "--snapshot", folder])
            assert code in {exits.FINE, exits.FINDINGS, exits.USAGE}, words
