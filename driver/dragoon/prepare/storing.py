"""Replacing a whole file in one step, the only way in which prepare writes."""

from pathlib import Path

from dragoon.prepare.effects import Effects
from dragoon.prepare.paths import temporary


def replace_file(
    effects: Effects, path: Path, data: bytes, mode: int, *, durable: bool = False
) -> None:
    """Puts `data` at `path`: a reader sees the old bytes or the new ones, never a part.

    durable: a power cut from now on leaves the new bytes or, until the folder is synced too, the
    old ones. What can be written again from the journal need not be durable.

    The temporary name is always the same: callers hold the lock of the claim, so what lies there
    is the rest of a process that died. A retry after a failed fsync writes all bytes again, since
    the kernel may have dropped those that it could not write.
    """
    partial = temporary(path)
    effects.write(partial, data, mode)
    if durable:
        effects.sync(partial)
    effects.rename(partial, path)
