"""A power cut for a real process: its folders become what a disk would have kept of its effects.

The process writes down every effect it has done. They are done again on a disk in memory that knows
what was synced, that disk loses its power, and what it has left is laid out.
"""

import base64
import hashlib
import random
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from chaoscampaign.node import Node
from dragoon.api.decoding import UNDECODABLE
from dragoon.prepare.effects_memory import MemoryDisk

_Replay = Callable[[MemoryDisk, list[Any]], None]


def roll_back(node: Node, luck: random.Random | None) -> None:
    """Lays out what survives in the state folder. The process must be dead.

    What was there when the process started counts as durable. luck: some of what was not synced
    survives too.
    """
    disk = MemoryDisk()
    for path, data in node.durable.items():
        disk.add_folder(path.parent, 0o755)
        disk.write(path, data, 0o600)
        disk.sync(path)
    for folder in disk.folders():
        disk.sync_folder(folder)
    for line in node.trace.read_bytes().splitlines():
        name, given = msgspec.json.decode(line)
        if name in _REPLAYS:
            _REPLAYS[name](disk, given)
    disk.power_cut("another boot", luck=luck)
    _lay_out(disk, node.state_folder)


def whole(entry: bytes) -> bool:
    """Whether the bytes of a journal file are all there: its checksum is of what it holds."""
    try:
        envelope = msgspec.json.decode(entry, type=dict[str, msgspec.Raw])
        body = bytes(envelope["entry"])
        checksum = msgspec.json.decode(envelope["checksum"], type=str)
    except (*UNDECODABLE, KeyError):
        return False
    return checksum == f"sha256:{hashlib.sha256(body).hexdigest()}"


def _lay_out(disk: MemoryDisk, root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir(parents=True)
    for path in disk.folders():
        if path.is_relative_to(root):
            path.mkdir(exist_ok=True)
    for path, data in disk.files().items():
        if path.is_relative_to(root):
            path.write_bytes(data)


def _bytes(value: Mapping[str, Any]) -> bytes:
    return zlib.decompress(base64.b64decode(value["z"]))


_REPLAYS: dict[str, _Replay] = {
    "make_folder": lambda disk, given: disk.add_folder(Path(given[0]), int(given[1])),
    "write": lambda disk, given: disk.write(Path(given[0]), _bytes(given[1]), int(given[2])),
    "sync": lambda disk, given: disk.sync(Path(given[0])),
    "rename": lambda disk, given: disk.rename(Path(given[0]), Path(given[1])),
    "patch": lambda disk, given: disk.patch(Path(given[0]), int(given[1]), _bytes(given[2])),
    "remove_tree": lambda disk, given: disk.remove_tree(Path(given[0])),
    "sync_folder": lambda disk, given: disk.sync_folder(Path(given[0])),
    "remove": lambda disk, given: disk.remove(Path(given[0])),
}
