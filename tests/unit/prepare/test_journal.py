"""The journal: what is stored, and that no broken file is fatal (case C32)."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dragoon.prepare import cdi
from dragoon.prepare.effects_memory import MemoryDisk, MemoryEffects
from dragoon.prepare.journal import Broken, Entry, Foreign, HeldDevice, Journal, State
from dragoon.prepare.paths import Paths
from dragoon.prepare.steps import CdiFile, Marker

PATHS = Paths("gpu.dragoon.dev", Path("/node/state"), Path("/node/cdi"))
UID = "7d3c6a3e-57a5-4d0e-9d3e-6f0f3f1f2a3b"
FILE = PATHS.journal(UID)
ENTRY = Entry(
    namespace="team-a",
    name="one",
    uid=UID,
    boot_id="boot-1",
    state=State.PREPARING,
    devices=(HeldDevice("g/ok", "node-a/gpu", "gpu-x", "0000:10:00.0", "GPU-1", "id", "s-1"),),
    steps=(
        Marker("gpu-x", "content\n"),
        CdiFile(cdi.Spec("0.5.0", "a/b", (cdi.Device("n", cdi.Edits(env=("A=b",))),))),
    ),
)


@pytest.fixture
def effects() -> MemoryEffects:
    effects = MemoryEffects(MemoryDisk())
    effects.make_folder(PATHS.journal_folder, 0o700)
    return effects


@pytest.fixture
def journal(effects: MemoryEffects) -> Journal:
    return Journal(effects, PATHS)


def stored(body: Any) -> bytes:
    data = json.dumps(body).encode()
    checksum = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return b'{"checksum": "%s", "entry": %s}' % (checksum.encode(), data)


def body_of(data: bytes | None) -> dict[str, Any]:
    assert data is not None
    found: dict[str, Any] = json.loads(data)["entry"]
    return found


def test_an_entry_comes_back_as_it_was(journal: Journal) -> None:
    journal.begin(ENTRY)
    assert journal.read(UID) == ENTRY
    assert journal.contents().entries == (ENTRY,)


def test_completing_changes_only_the_state(journal: Journal) -> None:
    journal.begin(ENTRY)
    done = journal.complete(ENTRY)
    assert done.state is State.PREPARED
    assert journal.read(UID) == done


def test_beginning_survives_a_power_cut_and_completing_never_loses_it(
    effects: MemoryEffects, journal: Journal
) -> None:
    effects.sync_folder(PATHS.state_folder)
    effects.sync_folder(PATHS.state_folder.parent)
    effects.sync_folder(Path("/"))
    journal.begin(ENTRY)
    journal.complete(ENTRY)

    effects.disk.power_cut("boot-2")

    assert journal.read(UID) == ENTRY


def test_a_file_is_for_root_only_and_says_its_version(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    assert effects.disk.mode(FILE) == 0o600
    assert body_of(effects.read(FILE))["version"] == 3


def test_removing_forgets_what_was_set_aside_too(effects: MemoryEffects, journal: Journal) -> None:
    effects.write(FILE, b"{", 0o600)
    journal.set_aside(UID)
    journal.begin(ENTRY)
    journal.remove(UID)
    assert effects.names(PATHS.journal_folder) == ()


BROKEN = {
    "empty file": b"",
    "half a file": b'{"checksum": "sha256:00", "entry": {"version": 1, "uid"',
    "wrong checksum": b'{"checksum": "sha256:00", "entry": {}}',
    "older list layout": b'[{"claim": "x", "devices": []}]',
    "no envelope": b'{"version": 1}',
    "bytes that are no text": b"\xff\xfe\x00",
    "a field of a wrong type": stored({"version": 1, "uid": 7}),
    "an entry that is a list": stored([]),
    "endless nesting": b'{"checksum": "", "entry": ' + b"[" * 100_000,
    "endless nesting beside the entry": b'{"more": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_c32_a_broken_file_is_told_and_kept_under_another_name(
    effects: MemoryEffects, journal: Journal, data: bytes
) -> None:
    effects.write(FILE, data, 0o600)

    broken = journal.read(UID)
    assert isinstance(broken, Broken)
    assert broken.reason
    assert journal.contents().unreadable == {UID}

    journal.set_aside(UID)
    assert journal.read(UID) is None
    assert journal.is_set_aside(UID)
    assert journal.contents().unreadable == {UID}
    assert effects.disk.files() == {FILE.with_name(f"{UID}.json.broken"): data}


def test_c32_one_broken_file_does_not_hide_the_others(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    effects.write(PATHS.journal("0a"), b"{", 0o600)
    effects.write(PATHS.journal_folder / "notes.txt", b"", 0o600)
    contents = journal.contents()
    assert contents.entries == (ENTRY,)
    assert [one.uid for one in contents.broken] == ["0a"]


def test_c32_a_later_version_with_unknown_fields_is_read_and_keeps_them(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    newer = body_of(effects.read(FILE)) | {"version": 3, "mood": {"good": True}}
    effects.write(FILE, stored(newer), 0o600)

    found = journal.read(UID)
    assert isinstance(found, Entry)
    assert found.devices == ENTRY.devices

    journal.complete(found)
    rewritten = body_of(effects.read(FILE))
    assert rewritten["mood"] == {"good": True}
    assert rewritten["version"] == 3
    assert rewritten["state"] == "prepared"


def test_c32_the_checksum_is_of_the_stored_bytes_not_of_another_encoding(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    body = body_of(effects.read(FILE))
    reordered = dict(reversed(body.items())) | {"extra": None}
    effects.write(FILE, stored(reordered), 0o600)
    assert journal.read(UID) == ENTRY


def test_c32_an_entry_with_steps_of_a_later_version_is_left_to_that_version(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    newer = body_of(effects.read(FILE)) | {"version": 3, "steps": [{"step": "mig", "x": 1}]}
    effects.write(FILE, stored(newer), 0o600)

    foreign = journal.read(UID)

    assert isinstance(foreign, Foreign)
    assert foreign.entry.devices == ENTRY.devices
    assert "mig" in foreign.reason
    contents = journal.contents()
    assert contents.held == (foreign.entry,)
    assert contents.entries == ()
    assert not contents.unreadable


LATER: dict[str, dict[str, Any]] = {
    "a tier": {"share": {"memory": 1, "cores": 0, "cardMemory": 2, "tier": "mps"}},
    "a share": {"share": {"fraction": "1/2"}},
    "an instance": {"mig": {"places": [1, 2]}},
}


@pytest.mark.parametrize("part", LATER.values(), ids=LATER.keys())
def test_c32_a_part_of_a_card_that_only_a_later_version_knows_counts_as_the_card(
    effects: MemoryEffects, journal: Journal, part: dict[str, Any]
) -> None:
    journal.begin(ENTRY)
    newer = body_of(effects.read(FILE)) | {"version": 4}
    newer["devices"][0] |= part
    effects.write(FILE, stored(newer), 0o600)

    foreign = journal.read(UID)

    assert isinstance(foreign, Foreign)
    assert foreign.entry.devices == ENTRY.devices, "all of it: nothing else can be told"
    assert (foreign.entry.version, foreign.entry.claim) == (4, ENTRY.claim)
    assert journal.contents().held == (foreign.entry,)
    assert not journal.contents().unreadable


def test_c32_a_state_that_only_a_later_version_knows_may_be_known_to_containers(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    newer = body_of(effects.read(FILE)) | {"version": 4, "state": "leaving"}
    effects.write(FILE, stored(newer), 0o600)

    foreign = journal.read(UID)

    assert isinstance(foreign, Foreign)
    assert foreign.entry.answered_in(ENTRY.boot_id)


def test_an_entry_in_the_file_of_another_claim_is_broken(
    effects: MemoryEffects, journal: Journal
) -> None:
    journal.begin(ENTRY)
    data = effects.read(FILE)
    assert data is not None
    effects.write(PATHS.journal("0a"), data, 0o600)
    assert isinstance(journal.read("0a"), Broken)
