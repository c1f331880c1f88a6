"""What the kubelet stand-in remembers of claims over its restarts.

As in the kubelet, a claim is written down before the plugin is asked, so that one whose answer
never came is unprepared too; and the CDI ids are kept, because a container that starts again gets
them from here and the plugin is not asked.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from dragoon.api.claims import ClaimRef
from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import StateError
from dragoon.prepare.port import PreparedDevice


class _Record(msgspec.Struct, frozen=True):
    """A claim and its devices, by driver; a driver without devices has not answered yet."""

    claim: ClaimRef
    devices: dict[str, tuple[PreparedDevice, ...]]


class Checkpoint:
    """The records of a node's claims by UID, in one file; every change is written at once."""

    def __init__(self, path: Path) -> None:
        """Reads the file if there is one. Raises StateError."""
        self._path = path
        self._records: dict[str, _Record] = {}
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(f"cannot read {path}: {error.strerror}") from error
        try:
            self._records = msgspec.json.decode(content, type=dict[str, _Record])
        except UNDECODABLE as error:
            raise StateError(f"{path} is not a checkpoint: {error}", hint="remove it") from error

    def devices(self, driver: str, uid: str) -> tuple[PreparedDevice, ...] | None:
        """A claim's devices of one driver, None when the driver was never asked for it."""
        record = self._records.get(uid)
        return record.devices.get(driver) if record else None

    def cdi_ids(self, uid: str, request: str | None) -> tuple[str, ...]:
        """The CDI ids of a claim for one of its requests, or for all of them."""
        record = self._records.get(uid)
        return tuple(
            cdi_id
            for devices in (record.devices.values() if record else ())
            for device in devices
            if request is None or not device.requests or request in device.requests
            for cdi_id in device.cdi_ids
        )

    def previous(self, claim: ClaimRef) -> ClaimRef | None:
        """Another claim that is still here and has the name of this one."""
        for record in self._records.values():
            other = record.claim
            same_name = (other.namespace, other.name) == (claim.namespace, claim.name)
            if same_name and other.uid != claim.uid:
                return other
        return None

    def record(self, driver: str, devices: Mapping[ClaimRef, tuple[PreparedDevice, ...]]) -> None:
        """Writes down the driver's devices of claims."""
        records = dict(self._records)
        for claim, found in devices.items():
            before = records.get(claim.uid)
            others = before.devices if before else {}
            records[claim.uid] = _Record(claim, {**others, driver: found})
        self._write(records)

    def forget(self, driver: str, uids: Iterable[str]) -> None:
        """Forgets the driver's devices of claims, and claims of which nothing is left."""
        records = dict(self._records)
        for uid in uids:
            record = records.pop(uid)
            rest = {name: found for name, found in record.devices.items() if name != driver}
            if rest:
                records[uid] = _Record(record.claim, rest)
        self._write(records)

    def _write(self, records: dict[str, _Record]) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            temporary.write_bytes(msgspec.json.encode(records))
            temporary.replace(self._path)
        except OSError as error:
            raise StateError(f"cannot write {self._path}: {error.strerror}") from error
        self._records = records
