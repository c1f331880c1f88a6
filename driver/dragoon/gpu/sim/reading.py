"""Text of a topology file -> checked fields. Every error names field, found and allowed."""

import re
from collections.abc import Collection
from typing import Any, get_args

import msgspec
import yaml

from dragoon.api.decoding import NOT_YAML
from dragoon.errors import InvalidInputError
from dragoon.gpu.sim.schema import IN_WORDS, MEMORY_QUERIES, SCHEMA, VIAS, TopologyFile, demand
from dragoon.gpu.words import ARCHITECTURES, BRANDS

_AT = re.compile(r" - at `(?P<path>\$[^`]*)`$")
_STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_CELL = re.compile(r"NV[1-9]\d?|PIX|PXB|PHB|NODE|SYS")
_LONGEST = 200  # characters of a wrong value shown in an error


def read_topology(text: str, origin: str) -> TopologyFile:
    """Parses and checks one file; `origin` names it in errors.

    Raises InvalidInputError for anything that is not exactly a topology file.
    """
    try:
        raw = yaml.safe_load(text)
    except NOT_YAML as error:
        raise InvalidInputError(f"{origin}: not YAML: {error}") from error
    demand(isinstance(raw, dict), f"{origin}: whole file", type(raw).__name__, "a mapping")
    demand(raw.get("schema") == SCHEMA, f"{origin}: schema", raw.get("schema"), SCHEMA)
    _refuse_unknown(raw, TopologyFile, origin)
    try:
        topology = msgspec.convert(raw, TopologyFile)
    except msgspec.ValidationError as error:
        raise InvalidInputError(_explained(str(error), raw, origin)) from error
    _check(topology, origin)
    return topology


def _refuse_unknown(raw: Any, kind: Any, where: str) -> None:
    structs = [kind] if isinstance(kind, type) else _structs_in(kind)
    if isinstance(raw, list):
        for position, item in enumerate(raw):
            _refuse_unknown(item, kind, f"{where}[{position}]")
    if not isinstance(raw, dict):
        return
    for struct in structs:
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
        for key, value in raw.items():
            demand(key in fields, f"{where}: field", key, ", ".join(sorted(fields)))
            if _structs_in(fields[key]):
                _refuse_unknown(value, fields[key], f"{where}: {key}")


def _structs_in(kind: Any) -> list[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in get_args(kind) for struct in _structs_in(part)]


def _explained(message: str, raw: Any, origin: str) -> str:
    at = _AT.search(message)
    if at is None:
        return f"{origin}: {message}"
    value = raw
    for step in _STEP.finditer(at["path"]):
        if step["key"] is not None and isinstance(value, dict):
            value = value.get(step["key"])
        elif step["index"] is not None and isinstance(value, list):
            value = value[int(step["index"])]
    where = at["path"].removeprefix("$.")
    expected = message[: at.start()].lower()
    for pattern, words in IN_WORDS.items():
        if repr(pattern) in message:
            expected = f"allowed: {words}"
    return f"{origin}: {where}: found {repr(value)[:_LONGEST]}, {expected}"


def _check(topology: TopologyFile, origin: str) -> None:
    slots = [gpu.index for gpu in topology.gpus]
    demand(
        slots == list(range(topology.count)),
        f"{origin}: gpus[].index",
        slots,
        f"0 to {topology.count - 1} in order, as count says",
    )
    for gpu in topology.gpus:
        where = f"{origin}: gpus[{gpu.index}]"
        _check_word(gpu.architecture, ARCHITECTURES.values(), f"{where}.architecture")
        _check_word(gpu.brand, BRANDS.values(), f"{where}.brand")
        _check_word(gpu.memory_query, MEMORY_QUERIES, f"{where}.memoryQuery")
    if topology.nvlink is not None:
        _check_word(topology.nvlink.via, VIAS, f"{origin}: nvlink.via")
    for name, groups in _groups(topology):
        flat = [slot for group in groups for slot in group]
        demand(
            len(flat) == len(set(flat)) and all(slot < topology.count for slot in flat),
            f"{origin}: {name}",
            groups,
            "every GPU at most once",
        )
    for node, slots_of_node in (topology.numa_groups or {}).items():
        found = [topology.gpus[slot].numa_node for slot in slots_of_node]
        demand(set(found) <= {node}, f"{origin}: numaGroups[{node}]", found, "what numaNode says")
    if topology.matrix is not None:
        _check_matrix(topology.matrix, topology.count, origin)


def _check_word(word: str | None, words: Collection[str], where: str) -> None:
    demand(word is None or word in words, where, word, ", ".join(words))


def _groups(topology: TopologyFile) -> list[tuple[str, tuple[tuple[int, ...], ...]]]:
    nvlink = topology.nvlink
    return [
        ("pcieSwitchGroups", topology.pcie_switch_groups or ()),
        ("numaGroups", tuple((topology.numa_groups or {}).values())),
        ("nvlink.groups", nvlink.groups if nvlink else ()),
        ("nvlink.allPairsOf", (nvlink.all_pairs_of,) if nvlink else ()),
    ]


def _check_matrix(matrix: tuple[tuple[str, ...], ...], count: int, origin: str) -> None:
    widths = [len(row) for row in matrix]
    demand(widths == [count] * count, f"{origin}: matrix", widths, f"{count} rows of {count} cells")
    for a, row in enumerate(matrix):
        for b, cell in enumerate(row):
            where = f"{origin}: matrix[{a}][{b}]"
            if a == b:
                demand(cell == "X", where, cell, "X")
            else:
                demand(_CELL.fullmatch(cell), where, cell, "NV1 to NV99, PIX, PXB, PHB, NODE, SYS")
                demand(cell == matrix[b][a], where, cell, f"{matrix[b][a]}, as in the other half")
