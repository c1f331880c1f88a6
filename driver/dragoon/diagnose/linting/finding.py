"""One finding of a lint, and what the rules look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoon.api.names import DRIVER_NAME
from dragoon.diagnose.codes import Severity
from dragoon.diagnose.documents import Origin, shown
from dragoon.diagnose.linting.checks import CHECKS
from dragoon.diagnose.linting.devices import Published
from dragoon.diagnose.manifests import Item, Manifests, Raw
from dragoon.diagnose.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where, and what to write instead.

    object: empty for a document that is none. instead: empty where there is nothing to write.
    """

    code: str
    origin: Origin
    object: str
    path: str
    found: str
    instead: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is, from the table of checks."""
        return CHECKS[self.code].severity

    @property
    def anchor(self) -> str:
        """Where the documentation says more."""
        return CHECKS[self.code].anchor

    def data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.origin.file,
            "document": self.origin.document,
            "line": self.origin.line,
            "object": self.object,
            "path": self.path,
            "found": self.found,
            "instead": self.instead,
            "docs": self.anchor,
        }


@dataclass(frozen=True, slots=True)
class Context:
    """All that rules may look at. snapshot: None where no cluster is known.

    devices: its devices.
    """

    manifests: Manifests
    snapshot: ClusterSnapshot | None = None
    driver: str = DRIVER_NAME
    devices: tuple[Published, ...] = ()

    def objects(self, kind: str) -> Iterator[tuple[str, str, Raw]]:
        """(namespace, name, object) of a kind: those in the files, then those of the cluster."""
        for item in self.manifests.of_kind(kind):
            yield item.namespace, item.name, item.raw
        if self.snapshot is not None:
            yield from self.snapshot.named(kind)


@dataclass(frozen=True, slots=True)
class Place:
    """A field of an object."""

    item: Item
    path: str

    def finding(self, code: str, found: Any, instead: str = "") -> Finding:
        """A finding here."""
        return finding(code, self.item, self.path, found, instead)


def finding(code: str, item: Item, path: str, found: Any, instead: str = "") -> Finding:
    """A finding in an object; what was found is cut where it is long."""
    return Finding(code, item.origin, str(item), path, shown(found), instead)
