"""Any topology file: read, simulated, looked at, printed and read again is the same machine."""

import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from device_check import report
from dragoon.errors import InvalidInputError
from dragoon.gpu.naming import whole_name
from dragoon.gpu.sim.profiles import machine_from
from tests.unit.gpu.rig import rig

PRODUCTS = ("NVIDIA H100 80GB HBM3", "NVIDIA GB200", "Tesla T4", "Prototype 7", "NVIDIA A30")
PROFILES = [
    {"name": "1g.10gb", "id": 19, "instances": 7, "starts": [0, 1, 2, 3], "size": 1},
    {"name": "1g.20gb", "id": 15, "instances": 2, "starts": [0, 2], "size": 2, "memoryGiB": 19.62},
    {"name": "4g.40gb", "id": 5, "instances": 1, "starts": [0], "size": 4, "sms": 64},
]


@st.composite
def nvlinks(draw: st.DrawFn, count: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(["none", "nvswitch", "nvswitch (rack)", "direct"]))
    if kind == "none":
        return {"via": "none"}
    if kind != "direct":
        members = draw(st.sets(st.integers(0, count - 1)))
        return {"via": kind, "linksPerGPU": 6, "allPairsOf": sorted(members)}
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.sets(st.sampled_from(pairs), max_size=6)) if pairs else set()
    entries = [{"a": a, "b": b, "links": draw(st.integers(1, 4))} for a, b in sorted(chosen)]
    return {"via": "bridge", "linksPerGPU": 24, "pairs": entries}


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 6))
    numbers = st.none() | st.integers(0, 7)
    cards = [
        {
            "index": index,
            "product": draw(st.sampled_from(PRODUCTS)),
            "memoryMiB": draw(st.none() | st.integers(1024, 200_000)),
            "numaNode": draw(numbers),
            "migCapable": draw(st.booleans()),
        }
        for index in range(count)
    ]
    together = draw(st.permutations(range(count)))[: draw(st.integers(0, count))]
    return {
        "schema": "case-topology/1",
        "name": "drawn",
        "count": count,
        "gpus": cards,
        "nvlink": draw(nvlinks(count)),
        "pcieSwitchGroups": [sorted(together)] if together else [],
        "mig": draw(st.none() | st.just({"axisWidth": 8, "profiles": PROFILES})),
    }


@given(files())
@settings(max_examples=30, deadline=None)
def test_a_machine_survives_being_printed_and_read(file: dict[str, Any]) -> None:
    text = yaml.safe_dump(file)
    machine = machine_from(text, "drawn")
    assert len({card.address for card in machine.cards}) == file["count"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        path.write_text(text)
        with rig(str(path), Path(folder)) as simulated:
            printed = report(simulated.gpus, "drawn") or ""
            found = simulated.look()
    again = machine_from(printed, "printed")
    assert {card.address: card.bridges for card in again.cards} == {
        card.address: card.bridges for card in machine.cards
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printed.yaml"
        path.write_text(printed)
        with rig(str(path), Path(folder)) as simulated:
            seen = simulated.look()
    names = {whole_name(gpu.address): gpu for gpu in found.gpus}
    assert {whole_name(gpu.address) for gpu in seen.gpus} == set(names)
    for gpu in seen.gpus:
        same = names[whole_name(gpu.address)]
        for field in ("product", "memory_bytes", "numa_node", "pcie_root", "pci_path", "mig"):
            assert getattr(gpu, field) == getattr(same, field)
        up = [sum(link.active for link in g.links) for g in (gpu, same)]
        assert up[0] == up[1]


@given(st.dictionaries(st.text(max_size=12), st.integers() | st.text(max_size=12), max_size=5))
def test_a_mapping_of_anything_is_refused_and_never_a_crash(found: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"^drawn: "):
        machine_from(yaml.safe_dump({"schema": "case-topology/1", **found}), "drawn")
