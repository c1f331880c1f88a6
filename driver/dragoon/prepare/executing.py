"""Doing what was decided, under the locks: all of it blocks and runs off the event loop.

One executor is shared by all calls of a process. What it does to one claim is ordered by the lock
of the claim, and what it does to a card by the lock of the card, against other threads and against
another plugin process (rolling update: both get calls in any order).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoon.errors import HardwareError
from dragoon.prepare import steps
from dragoon.prepare.deciding import Begin, Keep, WaitFor, decide
from dragoon.prepare.effects import Effects
from dragoon.prepare.guard import Holder, holder_of, holder_of_spec
from dragoon.prepare.journal import (
    Broken,
    Contents,
    Entry,
    Foreign,
    Journal,
    damaged,
    of_another_version,
)
from dragoon.prepare.observing import Observer, Repaired, Reported
from dragoon.prepare.settings import PrepareSettings


@dataclass(frozen=True, slots=True)
class Held:
    """The claim was not prepared, because another one holds its hardware."""

    by: Holder


class Executor:
    """Applies decisions to the node through the effects port."""

    def __init__(self, effects: Effects, settings: PrepareSettings, observer: Observer) -> None:
        self.effects = effects
        self.journal = Journal(effects, settings.paths)
        self._paths = settings.paths
        self._patience = settings.lock_s
        self._observer = observer

    def open(self) -> None:
        """Makes the folders of the journal durable; the CDI folder may live in memory."""
        paths = self._paths
        self.effects.make_folder(paths.state_folder, 0o750)
        self.effects.make_folder(paths.journal_folder, 0o700)
        self.effects.make_folder(paths.marker_folder, 0o755)
        self.effects.sync_folder(paths.state_folder)
        self.effects.sync_folder(paths.state_folder.parent)
        self.effects.make_folder(paths.cdi_folder, 0o755)

    def prepare(self, wanted: Entry) -> Entry | Held:
        """Prepares a claim as planned, or says who is in the way. Raises StateError."""
        with self.locked([claim_key(wanted.uid)]):
            own = self.own(wanted.uid)
            with self.locked([*card_keys(wanted), *card_keys(own)]):
                match decide(wanted, own, self._others(wanted)):
                    case Keep(entry):
                        self.restore(entry)
                        return entry
                    case WaitFor(holder):
                        return Held(holder)
                    case Begin(leftover):
                        return self._begin(wanted, leftover)

    def unprepare(self, uid: str, expected: Entry | None = None) -> None:
        """Takes a claim back; one that is unknown is a success.

        expected: only if the journal still says exactly this.
        """
        with self.locked([claim_key(uid)]):
            entry = self.own(uid)
            if expected is not None and entry != expected:
                return
            with self.locked(card_keys(entry)):
                self.clear(uid, entry)
                self.journal.remove(uid)

    def clear(self, uid: str, entry: Entry | None) -> None:
        """Undoes the steps of a claim, and removes what an unreadable entry left of it.

        The caller has its lock. The entry stays.
        """
        for step in reversed(entry.steps if entry else ()):
            steps.undo(self.effects, self._paths, uid, step)
        for path in self._files(self._paths.cdi_folder, self._paths.marker_folder):
            if self._paths.uid_of(path) == uid:
                self.effects.remove(path)

    def knows(self, uid: str) -> bool:
        """Whether anything of a claim is on this node."""
        paths = (self._paths.journal(uid), self._paths.spec(uid))
        return any(self.effects.exists(path) for path in paths)

    def in_use(self, uid: str) -> bool:
        """Whether containers may live with a claim: it was answered, in this boot."""
        match self.journal.read(uid):
            case Entry() as entry:
                return entry.answered_in(self.effects.boot_id())
            case None:
                return self.journal.is_set_aside(uid)
            case _:
                return True

    def prepared(self) -> int:
        """How many claims are prepared in this boot."""
        boot_id = self.effects.boot_id()
        return sum(entry.answered_in(boot_id) for entry in self.journal.contents().held)

    def restore(self, entry: Entry) -> None:
        """Makes every step of a prepared claim hold again (case C29). The caller has its lock."""
        for step in entry.steps:
            if not steps.holds(self.effects, self._paths, entry.uid, step):
                steps.apply(self.effects, self._paths, entry.uid, step)
                path = step.path(self._paths, entry.uid)
                self._observer(Repaired(entry.uid, f"{path} was lost or changed: written again"))

    @contextmanager
    def locked(self, keys: Iterable[str]) -> Iterator[None]:
        """Holds keys of `claim_key` and `card_keys`."""
        with self.effects.lock(self._paths.lock, keys, self._patience):
            yield

    def own(self, uid: str) -> Entry | None:
        """The entry of a claim; a damaged one is set aside. The caller has its lock.

        Raises StateError for one that another version wrote.
        """
        match self.journal.read(uid):
            case Broken() as broken:
                self._observer(Reported(uid, str(damaged(broken))))
                self.journal.set_aside(uid)
                return None
            case Foreign() as foreign:
                raise of_another_version(foreign)
            case entry:
                return entry

    def files_by_claim(self) -> dict[str, list[Path]]:
        """Every file of ours by the UID of its claim: whole, temporary or set aside."""
        found: dict[str, list[Path]] = {}
        for path in self._files(*self._paths.folders):
            uid = self._paths.uid_of(path)
            if uid is not None:
                found.setdefault(uid, []).append(path)
        return found

    def _others(self, wanted: Entry) -> tuple[Holder, ...]:
        contents = self.journal.contents()
        known = [holder_of(one) for one in contents.held if one.boot_id == wanted.boot_id]
        return (*known, *self._unreadable_holders(contents))

    def _unreadable_holders(self, contents: Contents) -> Iterator[Holder]:
        """Claims whose entry cannot be read, but whose CDI spec says what they hold."""
        for uid in contents.unreadable:
            data = self.effects.read(self._paths.spec(uid))
            if data is not None:
                yield holder_of_spec(uid, data)

    def _begin(self, wanted: Entry, leftover: Entry | None) -> Entry:
        for path in (path for step in wanted.steps for path in step.needs()):
            if not self.effects.exists(path):
                raise HardwareError(
                    f"device file {path} does not exist",
                    hint="make it with nvidia-modprobe, or start nvidia-persistenced",
                    retryable=True,
                )
        if leftover is not None:
            for step in leftover.steps:
                if step not in wanted.steps:
                    steps.undo(self.effects, self._paths, wanted.uid, step)
        self.journal.begin(wanted)
        for step in wanted.steps:
            steps.apply(self.effects, self._paths, wanted.uid, step)
        return self.journal.complete(wanted)

    def _files(self, *folders: Path) -> Iterator[Path]:
        for folder in folders:
            for name in self.effects.names(folder):
                yield folder / name


def claim_key(uid: str) -> str:
    """The lock of a claim. It sorts before every card's, and is always taken first."""
    return f"claim/{uid}"


def card_keys(entry: Entry | None) -> list[str]:
    """The locks of the cards that an entry touches."""
    return [f"gpu/{held.address}" for held in entry.devices] if entry else []
