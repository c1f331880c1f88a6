"""Keeping the files of claims as the journal says: at start, and whenever a folder has changed.

A kubelet that restarts does not prepare running pods again, so a CDI spec that somebody deletes is
written again by nobody but us, and a container that restarts without it fails. So the folders are
looked at every second: names and stamps only, and the files only when one of those changed.
"""

import enum
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dragoon.errors import DragoonError
from dragoon.prepare.executing import Executor, claim_key
from dragoon.prepare.journal import Entry, State
from dragoon.prepare.observing import Complaints, Counted, Observer
from dragoon.prepare.paths import is_temporary
from dragoon.prepare.threads import Overseer


class Tidy(enum.Enum):
    """What the files of one claim need."""

    NOTHING = "nothing"
    RESTORE = "restore"
    CLEAR = "clear"


def tidy(entry: Entry | None, *, set_aside: bool, boot_id: str) -> Tidy:
    """Decides about the files of one claim.

    Files of an earlier boot stand for effects that are gone; the entry stays, for the kubelet will
    ask again. Files without an entry are removed, unless an unreadable entry was set aside: then
    the spec may be in use, and tells the guard what the claim holds.
    """
    if entry is None:
        return Tidy.NOTHING if set_aside else Tidy.CLEAR
    if entry.boot_id != boot_id:
        return Tidy.CLEAR
    return Tidy.RESTORE if entry.state is State.PREPARED else Tidy.NOTHING


class Tidier:
    """Tidies all claims. Its methods block; one thread at a time calls them.

    patience: seconds that one claim may take, whose card may hang. unreadable: the claims of which
    the last look found no entry that can be read.
    """

    def __init__(
        self, executor: Executor, folders: Sequence[Path], observer: Observer, *, patience: float
    ) -> None:
        self._executor = executor
        self._overseer = Overseer(patience)
        self._folders = folders
        self._observer = observer
        self._complaints = Complaints(observer)
        self._seen: object = None
        self.unreadable: frozenset[str] = frozenset()

    def look(self) -> None:
        """Tidies if any file changed since all was well. Problems are reported, each once."""
        found: dict[str, str] = {}
        try:
            # Taken before the work, so that a change during the work is seen the next time.
            stamps = tuple(map(self._executor.effects.stamps, self._folders))
            if stamps == self._seen:
                return
            for uid, files in self._executor.files_by_claim().items():
                try:
                    self._overseer.oversee(uid, partial(self._tidy, uid, files))
                except DragoonError as error:
                    found[uid] = str(error)
            if problems := self._executor.sweep_regions():
                found[""] = "; ".join(problems)
            contents = self._executor.journal.contents()
            self._observer(Counted(self._executor.prepared(contents)))
            self.unreadable = contents.unreadable
            self._seen = None if found else stamps
        except DragoonError as error:
            found[""] = str(error)
        self._complaints.are(found)

    def forget(self) -> None:
        """Lets the next look be a whole one: not everything that can be lost is a file."""
        self._seen = None

    def _tidy(self, uid: str, files: Sequence[Path]) -> None:
        executor = self._executor
        with executor.locked([claim_key(uid)]):
            entry = executor.own(uid)
            decision = tidy(
                entry,
                set_aside=executor.journal.is_set_aside(uid),
                boot_id=executor.effects.boot_id(),
            )
            with executor.locked(executor.keys(uid, entry)):
                if decision is Tidy.RESTORE and entry is not None:
                    executor.restore(entry)
                elif decision is Tidy.CLEAR:
                    executor.clear(uid, entry)
            # Nobody writes them now: that takes the lock.
            for path in filter(is_temporary, files):
                executor.effects.remove(path)
