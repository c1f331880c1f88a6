"""The journal: one file for each claim that this node prepares or has prepared.

A file is `{"checksum": ..., "entry": {...}}`; the checksum covers the bytes of the entry as they
are stored, so that another version's way of encoding cannot break it (case C32). Fields that this
version does not know are kept when it rewrites a file. A file that was damaged is reported and set
aside under another name. One that is whole, but of a version that says what this one does not
understand (a step, a tier, a state), belongs to the other plugin of a rolling update: it is left as
it is, and its claim is guarded but not touched. Neither stops the others.
"""

import enum
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from dragoon.api.claims import ClaimRef
from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import StateError
from dragoon.prepare.effects import Effects, is_damage
from dragoon.prepare.mig import MigPart
from dragoon.prepare.paths import SET_ASIDE, Paths, temporary
from dragoon.prepare.port import PreparedDevice
from dragoon.prepare.shares import Share
from dragoon.prepare.steps import Step
from dragoon.prepare.storing import replace_file

VERSION = 3
"""1 knew whole GPUs only; 2 added shares, MIG instances and the pod that a claim belongs to; 3 adds
the record of what was changed on cards."""
_MODE = 0o600


class State(enum.StrEnum):
    """How far a claim is. `preparing` was never answered: no container can know its devices."""

    PREPARING = "preparing"
    PREPARED = "prepared"


class _HeldCard(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What every version says of a device."""

    request: str
    pool: str
    device: str
    address: str
    uuid: str
    cdi_id: str
    share_id: str | None = None
    admin_access: bool = False


class HeldDevice(_HeldCard, frozen=True):
    """One device of a claim, and the hardware that it was when the claim was prepared.

    request may be `name/subrequest`; address is the PCI address in the kernel's form, and uuid that
    of the card. share or mig is the part of the card that the claim holds; all of it without both.
    """

    share: Share | None = None
    mig: MigPart | None = None

    @property
    def allocated(self) -> tuple[str, str, str, str | None, bool]:
        """What the allocation says of this device; the rest is how this node carried it out."""
        return (self.request, self.pool, self.device, self.share_id, self.admin_access)


class Entry(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What this node did, or is about to do, for one claim.

    pod_uid: the only pod whose containers may use it; empty where any pod may.
    """

    version: int = VERSION
    namespace: str
    name: str
    uid: str
    boot_id: str
    state: State
    devices: tuple[HeldDevice, ...]
    steps: tuple[Step, ...]
    pod_uid: str = ""

    @property
    def claim(self) -> ClaimRef:
        return ClaimRef(self.namespace, self.name, self.uid)

    def answered_in(self, boot_id: str) -> bool:
        """Whether containers of this boot may know its devices."""
        return self.state is State.PREPARED and self.boot_id == boot_id

    def answer(self) -> tuple[PreparedDevice, ...]:
        """What the kubelet is told."""
        return tuple(
            PreparedDevice(
                requests=(held.request.partition("/")[0],),
                pool=held.pool,
                device=held.device,
                cdi_ids=(held.cdi_id,),
                share_id=held.share_id,
            )
            for held in self.devices
        )


class _Outline(msgspec.Struct, frozen=True, rename="camel"):
    """What every version says of a claim."""

    version: int
    namespace: str
    name: str
    uid: str
    boot_id: str
    devices: tuple[_HeldCard, ...]

    @property
    def entry(self) -> Entry:
        """Fail closed: containers may live with it, and a part of a card counts as all of it."""
        devices = tuple(HeldDevice(**msgspec.structs.asdict(one)) for one in self.devices)
        told = msgspec.structs.asdict(self) | {"devices": devices}
        return Entry(**told, state=State.PREPARED, steps=())


class _Envelope(msgspec.Struct, frozen=True):
    checksum: str
    entry: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Broken:
    """A journal file that cannot be read, and why."""

    uid: str
    reason: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """An undamaged entry that this version does not understand; `entry` has no steps."""

    entry: Entry
    reason: str

    @property
    def uid(self) -> str:
        return self.entry.uid


Found = Entry | Foreign | Broken
"""What a journal file may be."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The whole journal. set_aside are UIDs of which an unreadable file was kept."""

    entries: tuple[Entry, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    broken: tuple[Broken, ...] = ()
    set_aside: frozenset[str] = frozenset()

    @property
    def unreadable(self) -> frozenset[str]:
        """Claims that were prepared here, and of which no entry can be read now."""
        return (self.set_aside | {one.uid for one in self.broken}) - {e.uid for e in self.held}

    @property
    def held(self) -> tuple[Entry, ...]:
        """Everything that says which devices it holds."""
        return (*self.entries, *(one.entry for one in self.foreign))

    def of(self, uid: str) -> Found | None:
        """What the file of a claim is, None if there is none."""
        files: tuple[Found, ...] = (*self.entries, *self.foreign, *self.broken)
        return next((one for one in files if one.uid == uid), None)


class Journal:
    """The journal files of this node.

    Callers hold the lock of a claim while they change its file.
    """

    def __init__(self, effects: Effects, paths: Paths) -> None:
        self._effects = effects
        self._paths = paths

    def read(self, uid: str) -> Found | None:
        """The entry of a claim, None if there is no file."""
        try:
            data = self._effects.read(self._paths.journal(uid))
        except StateError as error:
            if is_damage(error):
                return Broken(uid, str(error))
            raise
        return None if data is None else _decode(uid, data)

    def contents(self) -> Contents:
        """Every entry. Files that are not the journal's are left alone and not mentioned."""
        entries: list[Entry] = []
        foreign: list[Foreign] = []
        broken: list[Broken] = []
        aside: set[str] = set()
        for name in self._effects.names(self._paths.journal_folder):
            uid = self._paths.uid_of_entry(name)
            if uid is None:
                other = self._paths.uid_of(self._paths.journal_folder / name)
                if other is not None and SET_ASIDE in name:
                    aside.add(other)
                continue
            match self.read(uid):
                case Entry() as entry:
                    entries.append(entry)
                case Foreign() as newer:
                    foreign.append(newer)
                case Broken() as unreadable:
                    broken.append(unreadable)
        return Contents(tuple(entries), tuple(foreign), tuple(broken), frozenset(aside))

    def begin(self, entry: Entry, *, anew: bool = False) -> None:
        """Records what is about to be done; once this returned, a power cut does not forget it.

        anew: no older entry of this claim is there, of which unknown fields would have to be kept.
        """
        self._write(entry, anew=anew)
        self._effects.sync_folder(self._paths.journal_folder)

    def complete(self, entry: Entry, *, anew: bool = False) -> Entry:
        """Records that all of it is done. anew: as it was begun.

        The folder is not synced: a power cut may bring back the entry as it was begun, and after
        one every effect is redone anyway.
        """
        done = msgspec.structs.replace(entry, state=State.PREPARED)
        self._write(done, anew=anew)
        return done

    def remove(self, uid: str) -> None:
        """Forgets a claim, also what was set aside and what was never finished of it.

        The folder is not synced: an entry that a power cut brings back is of an earlier boot, so
        it holds nothing, and the sweep finds that its claim has gone.
        """
        path = self._paths.journal(uid)
        ours = {one.name: one for one in (path, _aside(path), temporary(path))}
        for name in self._effects.names(self._paths.journal_folder):
            if name in ours:
                self._effects.remove(ours[name])

    def is_set_aside(self, uid: str) -> bool:
        """Whether an unreadable file of this claim is kept."""
        return self._effects.exists(_aside(self._paths.journal(uid)))

    def set_aside(self, uid: str) -> None:
        """Moves an unreadable file out of the way; it is kept until the claim is unprepared."""
        path = self._paths.journal(uid)
        self._effects.rename(path, _aside(path))

    def _write(self, entry: Entry, *, anew: bool) -> None:
        path = self._paths.journal(entry.uid)
        data = _encode(entry, {} if anew else _unknown_fields(self._effects.read(path)))
        replace_file(self._effects, path, data, _MODE, durable=True)


_KNOWN = frozenset(field.encode_name for field in msgspec.structs.fields(Entry))


@lru_cache(maxsize=256)
def _aside(path: Path) -> Path:
    return path.with_name(path.name + SET_ASIDE)


def _encode(entry: Entry, unknown: dict[str, Any]) -> bytes:
    body = msgspec.json.encode(msgspec.to_builtins(entry) | unknown if unknown else entry)
    return msgspec.json.encode(_Envelope(_checksum(body), msgspec.Raw(body))) + b"\n"


# Kept, for each of several claims that are prepared together reads the entries of all others.
@lru_cache(maxsize=128)
def _decode(uid: str, data: bytes) -> Found:
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        body = bytes(envelope.entry)
        if envelope.checksum != _checksum(body):
            return Broken(uid, "the checksum does not match: the file was damaged or edited")
        found = _understand(body)
    except UNDECODABLE as error:
        return Broken(uid, f"not a journal entry of a version that can be read: {error}")
    entry = found.entry if isinstance(found, Foreign) else found
    if entry.uid != uid:
        return Broken(uid, f"the entry is of claim {entry.uid}, the file name of {uid}")
    return found


def _understand(body: bytes) -> Entry | Foreign:
    try:
        return _carried_over(msgspec.json.decode(body, type=Entry))
    except msgspec.ValidationError as error:
        return Foreign(_guessed(body), str(error))


def _guessed(body: bytes) -> Entry:
    """An entry of a later version, without its steps and what else is not understood."""
    without = msgspec.json.decode(body, type=dict[str, Any]) | {"steps": []}
    try:
        return msgspec.convert(without, Entry)
    except msgspec.ValidationError:
        return msgspec.convert(without, _Outline).entry


def _carried_over(entry: Entry) -> Entry:
    """An entry of an older version as this one writes it.

    Version 1 lacks only fields whose defaults mean what it meant: whole cards, for any pod.
    Version 2 lacks the record of what was changed on cards: its claims stay without one, so that
    the plugin that wrote them can still take them back.
    """
    return msgspec.structs.replace(entry, version=max(entry.version, VERSION))


def _unknown_fields(data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        body = msgspec.json.decode(envelope.entry, type=dict[str, Any])
    except UNDECODABLE:
        return {}
    return {name: value for name, value in body.items() if name not in _KNOWN}


def _checksum(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def damaged(broken: Broken) -> StateError:
    """The error that tells about a damaged file."""
    return StateError(
        f"journal of claim {broken.uid}: {broken.reason}",
        hint="it is kept under another name; the claim is prepared anew when the kubelet asks",
    )


def of_another_version(foreign: Foreign) -> StateError:
    """The error that tells about a claim that another version of this plugin has prepared."""
    return StateError(
        f"claim {foreign.entry.claim} was prepared by version {foreign.entry.version} of the "
        f"journal, which this plugin does not understand: {foreign.reason}",
        hint="run the newer plugin again until the claims of this node have ended",
    )
