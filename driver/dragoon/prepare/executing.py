"""Doing what was decided, under the locks: all of it blocks and runs off the event loop.

One executor is shared by all calls of a process. What it does to one claim is ordered by the lock
of the claim, and what it does to a card by the lock of the card, against other threads and against
another plugin process (rolling update: both get calls in any order).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dragoon.errors import DragoonError, StateError
from dragoon.prepare.deciding import Begin, Keep, WaitFor, decide
from dragoon.prepare.effects import Effects
from dragoon.prepare.enforcement.hami_steps import remove_region, shared_name
from dragoon.prepare.guard import Holder, holder_of, holder_of_spec
from dragoon.prepare.journal import (
    Broken,
    Contents,
    Entry,
    Foreign,
    Found,
    Journal,
    damaged,
    of_another_version,
)
from dragoon.prepare.mig_filling import filled
from dragoon.prepare.mig_settling import reopened, settled
from dragoon.prepare.mig_steps import MigStep, blaming
from dragoon.prepare.observing import Observer, Repaired, Reported
from dragoon.prepare.paths import is_temporary
from dragoon.prepare.recalling import recalled
from dragoon.prepare.settings import PrepareSettings
from dragoon.prepare.step import Place
from dragoon.prepare.steps import Step, recorded


@dataclass(frozen=True, slots=True)
class Held:
    """The claim was not prepared, because another one holds its hardware."""

    by: Holder


class Executor:
    """Applies decisions to the node through the effects port."""

    def __init__(self, effects: Effects, settings: PrepareSettings, observer: Observer) -> None:
        self.effects = effects
        self.journal = Journal(effects, settings.paths)
        self._settings = settings
        self._paths = settings.paths
        self._patience = settings.lock_s
        self._observer = observer

    def open(self) -> None:
        """Makes the folders of the journal durable; the CDI folder may live in memory."""
        paths = self._paths
        self.effects.make_folder(paths.state_folder, 0o750)
        self.effects.make_folder(paths.journal_folder, 0o700)
        self.effects.make_folder(paths.marker_folder, 0o755)
        # Containers are given folders in it; on the node nobody else may look into those.
        self.effects.make_folder(paths.region_folder, 0o711)
        self.effects.sync_folder(paths.state_folder)
        self.effects.sync_folder(paths.state_folder.parent)
        self.effects.make_folder(paths.cdi_folder, 0o755)

    def prepare(self, wanted: Entry, *, may_divide: bool = False) -> Entry | Held:
        """Prepares a claim as planned, or says who is in the way.

        may_divide: cards may be divided by MIG for it. Raises StateError, HardwareError.
        """
        keys = [claim_key(wanted.uid), *effect_keys(wanted)]
        while True:
            with self.locked(keys):
                contents = self.journal.contents()
                own = self._own_in(contents, wanted)
                # An earlier try may have touched other cards. Locks are taken all at once, in one
                # order for everybody: so it begins again with theirs.
                more = [key for key in effect_keys(own) if key not in keys]
                if not more:
                    return self._decided(wanted, own, contents, may_divide=may_divide)
            keys += more

    def unprepare(self, uid: str, expected: Entry | None = None) -> None:
        """Takes a claim back; one that is unknown is a success.

        expected: only if the journal still says exactly this.
        """
        with self.locked([claim_key(uid)]):
            entry = self.own(uid)
            if expected is not None and entry != expected:
                return
            with self.locked(self.keys(uid, entry)):
                self.clear(uid, entry)
                self.journal.remove(uid)

    def rebuild(self, wanted: Entry) -> bool:
        """Writes the entry of a claim anew, as planned, if its own was damaged and it was answered.

        Says whether it did. Raises what `prepare` raises.
        """
        with self.locked([claim_key(wanted.uid)]):
            own = None if self.own(wanted.uid) else self._recalled(wanted)
            if own is not None:
                with self.locked(effect_keys(own)):
                    self.restore(own)
            return own is not None

    def forget(self, uid: str) -> bool:
        """Clears away a damaged entry whose claim no pod has, unless a CDI spec is left of it.

        A spec says that containers may live with it. Says whether it did.
        """
        with self.locked([claim_key(uid)]):
            if self.own(uid) is not None or self.effects.exists(self._paths.spec(uid)):
                return False
            with self.locked(self.keys(uid, None)):
                self.clear(uid, None)
                self.journal.remove(uid)
            return True

    def keys(self, uid: str, entry: Entry | None) -> list[str]:
        """The locks for `clear`. The caller has that of the claim."""
        if entry is not None:
            return effect_keys(entry)
        changes = recorded(self.effects, self._paths, uid)
        return [f"gpu/{step.address}" for step in changes] + _shared_keys(changes)

    def clear(self, uid: str, entry: Entry | None) -> None:
        """Undoes the steps of a claim, and removes what an unreadable entry left of it.

        The caller has its locks. The entry stays.
        """
        self._undo(uid, entry.steps if entry else recorded(self.effects, self._paths, uid))
        for folder in (self._paths.cdi_folder, self._paths.marker_folder):
            for path in (folder / name for name in self.effects.names(folder) if uid in name):
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

    def prepared_entry(self, uid: str) -> Entry | None:
        """The entry of a claim that is prepared in this boot, None for every other."""
        found = self.journal.read(uid)
        if isinstance(found, Entry) and found.answered_in(self.effects.boot_id()):
            return found
        return None

    def prepared(self, contents: Contents) -> int:
        """How many claims are prepared in this boot."""
        boot_id = self.effects.boot_id()
        return sum(entry.answered_in(boot_id) for entry in contents.held)

    def restore(self, entry: Entry) -> Entry:
        """Makes every step of a prepared claim hold again (case C29). The caller has its locks.

        Answers the entry as it is now: a MIG instance that was lost is another one.
        """
        again = reopened(entry, self.effects.mig)
        if again != entry:
            self.journal.complete(again)
        full = self._carry_out(again, self._put_right)
        return entry if full == entry else self.journal.complete(full)

    def sweep_regions(self) -> tuple[str, ...]:
        """Removes regions of containers that no claim is for any more, and what was never finished.

        A claim whose entry cannot be read may need any region: then none is removed. Answers what
        is wrong with those that stay, for a container may have made of its own what it liked.
        """
        found: dict[str, list[Path]] = {}
        for name in self.effects.names(self._paths.region_folder):
            path = self._paths.region_folder / name
            found.setdefault(self._paths.region_of(path), []).append(path)
        problems = []
        for region, paths in found.items():
            try:
                self._sweep_region(region, paths)
            except DragoonError as error:
                problems.append(str(error))
        return tuple(problems)

    def _sweep_region(self, region: str, paths: Iterable[Path]) -> None:
        key = shared_name(region)
        with self.locked([_shared_key(key)]):
            contents = self.journal.contents()
            all_known = not (contents.unreadable or contents.foreign)
            if all_known and key not in _shared(contents.entries):
                remove_region(self.effects, self._paths, region)
            # Nobody writes them now: that takes the lock.
            for path in filter(is_temporary, paths):
                self.effects.remove(path)

    def locked(self, keys: Iterable[str]) -> AbstractContextManager[None]:
        """Holds keys of `claim_key` and `effect_keys`."""
        return self.effects.lock(self._paths.lock, keys, self._patience)

    def own(self, uid: str) -> Entry | None:
        """The entry of a claim; a damaged one is set aside. The caller has its lock.

        Raises StateError for one that another version wrote.
        """
        return self._understood(self.journal.read(uid))

    def _understood(self, found: Found | None) -> Entry | None:
        match found:
            case Broken() as broken:
                self._observer(Reported(broken.uid, str(damaged(broken))))
                self.journal.set_aside(broken.uid)
                return None
            case Foreign() as foreign:
                raise of_another_version(foreign)
            case entry:
                return entry

    def _own_in(self, contents: Contents, wanted: Entry) -> Entry | None:
        """`own`, out of the whole journal; one that is set aside is recalled."""
        found = contents.of(wanted.uid)
        own = self._understood(found)
        aside = found is not None or wanted.uid in contents.set_aside
        return self._recalled(wanted) if own is None and aside else own

    def _decided(
        self, wanted: Entry, own: Entry | None, contents: Contents, *, may_divide: bool
    ) -> Entry | Held:
        """Decides and acts; the caller has the locks of all that is touched."""
        match decide(wanted, own, self._others(wanted, contents)):
            case Keep(entry):
                self._apply_believed(entry)
                return self.restore(entry)
            case WaitFor(holder):
                return Held(holder)
            case Begin(leftover):
                living = self._living(wanted.uid, contents)
                mig = self.effects.mig
                needed = settled(wanted, own, living, mig, may_divide=may_divide)
                return self._begin(needed, leftover)

    def _recalled(self, wanted: Entry) -> Entry | None:
        """The entry of a claim whose own was set aside, journaled again; not yet verified."""
        if not self.journal.is_set_aside(wanted.uid):
            return None
        spec = self.effects.read(self._paths.spec(wanted.uid))
        found = recalled(wanted, spec, recorded(self.effects, self._paths, wanted.uid))
        if found is not None:
            self.journal.begin(found)
            what = "its journal entry was damaged: written anew from the allocation and the node"
            self._observer(Repaired(wanted.uid, what))
        return found

    def files_by_claim(self) -> dict[str, list[Path]]:
        """Every file of ours by the UID of its claim: whole, temporary or set aside."""
        found: dict[str, list[Path]] = {}
        for folder in self._paths.folders:
            for path in (folder / name for name in self.effects.names(folder)):
                uid = self._paths.uid_of(path)
                if uid is not None:
                    found.setdefault(uid, []).append(path)
        return found

    def _others(self, wanted: Entry, contents: Contents) -> tuple[Holder, ...]:
        known = [holder_of(one) for one in contents.held if one.boot_id == wanted.boot_id]
        return (*known, *self._unreadable_holders(contents))

    def _unreadable_holders(self, contents: Contents) -> Iterator[Holder]:
        """Claims whose entry cannot be read, but whose CDI spec says what they hold."""
        for uid in contents.unreadable:
            data = self.effects.read(self._paths.spec(uid))
            if data is not None:
                yield holder_of_spec(uid, data)

    def _begin(self, wanted: Entry, leftover: Entry | None) -> Entry:
        place = self._place(wanted.uid)
        self._check_shared(wanted, place)
        for step in wanted.steps:
            step.check(place)
        if leftover is not None:
            gone = leftover.boot_id != wanted.boot_id
            self._undo(wanted.uid, [s for s in leftover.steps if gone or s not in wanted.steps])
        anew = leftover is None
        self.journal.begin(wanted, anew=anew)
        return self.journal.complete(self._carry_out(wanted, _apply), anew=anew)

    def _carry_out(self, entry: Entry, do: Callable[[Step, Place], None]) -> Entry:
        """Does every step. What cards are divided into says what the rest of them is."""
        place = self._place(entry.uid)
        for step in entry.steps:
            if isinstance(step, MigStep):
                with blaming(step):
                    do(step, place)
        full = filled(entry, self.effects.mig, self._settings)
        for step in full.steps:
            if step not in entry.steps:
                step.check(place)
        for step in full.steps:
            if not isinstance(step, MigStep):
                do(step, place)
        return full

    def _apply_believed(self, entry: Entry) -> None:
        place = self._place(entry.uid)
        for step in entry.steps:
            if step.believed():
                step.apply(place)

    def _put_right(self, step: Step, place: Place) -> None:
        if not step.holds(place):
            step.apply(place)
            what = step.about(place)
            self._observer(Repaired(place.uid, f"{what} was lost or changed: put right"))

    def _undo(self, uid: str, steps: Sequence[Step]) -> None:
        """Undoes steps of a claim, the last first, but for what another claim needs too."""
        needed: frozenset[str] = frozenset()
        if any(step.shared() for step in steps):
            needed = _shared(self._living(uid))
        for step in reversed(steps):
            if step.shared() not in needed:
                step.undo(self._place(uid))

    def _check_shared(self, wanted: Entry, place: Place) -> None:
        """Two claims that make one thing must mean the same, or one would undo the other."""
        shared = {step.shared(): step for step in wanted.steps if step.shared()}
        for other in self._living(wanted.uid) if shared else ():
            for theirs in other.steps:
                mine = shared.get(theirs.shared())
                if mine is not None and not mine.agrees(theirs):
                    raise StateError(
                        f"claim {wanted.claim}: {mine.about(place)} was made "
                        f"otherwise for claim {other.claim}",
                        hint="delete the pod that has both claims",
                    )

    def _place(self, uid: str) -> Place:
        return Place(self.effects, self._paths, uid)

    def _living(self, uid: str, contents: Contents | None = None) -> tuple[Entry, ...]:
        """The entries of other claims whose effects are of this boot."""
        boot_id = self.effects.boot_id()
        entries = (contents or self.journal.contents()).entries
        return tuple(one for one in entries if one.uid != uid and one.boot_id == boot_id)


def _apply(step: Step, place: Place) -> None:
    step.apply(place)


def claim_key(uid: str) -> str:
    """The lock of a claim. It sorts before all others, and is always taken first."""
    return f"claim/{uid}"


def effect_keys(entry: Entry | None) -> list[str]:
    """The locks of the cards that an entry touches, and of what it makes together with others."""
    if entry is None:
        return []
    cards = [f"gpu/{held.address}" for held in entry.devices]
    return cards + _shared_keys(entry.steps)


def _shared_keys(steps: Iterable[Step]) -> list[str]:
    return [_shared_key(step.shared()) for step in steps if step.shared()]


def _shared_key(name: str) -> str:
    return f"shared/{name}"


def _shared(entries: Iterable[Entry]) -> frozenset[str]:
    """What these claims make together with others; never the empty name."""
    return frozenset(step.shared() for one in entries for step in one.steps) - {""}
