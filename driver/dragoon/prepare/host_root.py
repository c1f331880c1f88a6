"""Paths of the node as this process sees them, and as the container runtime does.

In a container the node's root folder is mounted somewhere: files are looked for below that mount,
and named in CDI specs without it.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoon.prepare.cdi import DeviceNode, Edits


@dataclass(frozen=True, slots=True)
class HostRoot:
    """mount: where the node's root folder is; `/` outside of a container."""

    mount: Path = Path("/")

    def here(self, path: Path) -> Path:
        """A path of the node, for this process to look at."""
        return self.mount / path.relative_to("/")

    def there(self, path: str) -> str:
        """A path that this process sees, as it is called on the node."""
        found = Path(path)
        return f"/{found.relative_to(self.mount)}" if found.is_relative_to(self.mount) else path

    def edits(self, seen: Edits) -> Edits:
        """Edits that name files as this process sees them, as the container runtime needs them."""
        if self.mount == Path("/"):
            return seen
        replace = msgspec.structs.replace
        return replace(
            seen,
            mounts=tuple(replace(m, host_path=self.there(m.host_path)) for m in seen.mounts),
            device_nodes=tuple(self._node(node) for node in seen.device_nodes),
            hooks=tuple(replace(hook, path=self.there(hook.path)) for hook in seen.hooks),
        )

    def _node(self, seen: DeviceNode) -> DeviceNode:
        """An empty host path is the path in the container."""
        host = self.there(seen.host_path) if seen.host_path else ""
        return msgspec.structs.replace(seen, host_path="" if host == seen.path else host)
