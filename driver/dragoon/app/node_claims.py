"""The claims that are prepared on this node, as its journal says: for commands and for publishing.

Needs neither the API server nor a plugin that runs.
"""

from pathlib import Path

from dragoon.app.config import PluginConfig
from dragoon.errors import ClaimGoneError
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.journal import Contents, Entry, Journal
from dragoon.prepare.paths import Paths


def paths_of(config: PluginConfig) -> Paths:
    """Where prepare keeps its files."""
    return Paths(
        config.driver_name,
        config.state_folder,
        Path(config.cdi_root),
        cgroup_root=Path(config.cgroup_root),
    )


def contents(config: PluginConfig) -> Contents:
    """The whole journal. Blocks. Raises StateError when it cannot be read."""
    return Journal(HostEffects(Path(config.proc_root)), paths_of(config)).contents()


def problems(found: Contents) -> tuple[str, ...]:
    """What of the journal cannot be told, as notes for people."""
    return (
        *(f"journal of claim {one.uid}: {one.reason}" for one in found.broken),
        *(f"claim {one.entry.claim}: prepared by a newer version" for one in found.foreign),
    )


def chosen(found: Contents, wish: str | None) -> tuple[Entry, ...]:
    """The claims that are meant by `name`, `namespace/name` or a UID; all of them for None.

    Raises ClaimGoneError, which lists what is prepared here, when there is none.
    """
    if wish is None:
        return found.entries
    mine = tuple(one for one in found.entries if wish in _names(one))
    if not mine:
        known = ", ".join(sorted(_names(one)[1] for one in found.entries)) or "none"
        raise ClaimGoneError(
            f"claim: found {wish!r}, which is not prepared on this node; prepared are: {known}",
            hint="run this on the node of the pod that uses the claim",
        )
    return mine


def _names(entry: Entry) -> tuple[str, str, str]:
    return (entry.name, f"{entry.namespace}/{entry.name}", entry.uid)
