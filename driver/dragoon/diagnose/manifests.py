"""Kubernetes objects in files, each with the place where it stands."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from dragoon.diagnose.documents import Document, Origin, Unreadable, shown

Raw = Mapping[str, Any]

RESOURCE_GROUP: Final = "resource.k8s.io"
CLUSTER_SCOPED: Final = frozenset(
    (
        *("DeviceClass", "ResourceSlice", "DeviceTaintRule", "Node", "Namespace", "Snapshot"),
        *("ClusterQueue", "ResourceFlavor", "AdmissionCheck", "PriorityClass"),
    )
)


def mapping(value: Any) -> Raw:
    """The value if it is an object, else an empty one: users write anything anywhere."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One object. namespace: of a namespaced object that names none, the given default."""

    origin: Origin
    raw: Raw
    namespace: str

    @property
    def kind(self) -> str:
        return text(self.raw.get("kind"))

    @property
    def api_version(self) -> str:
        return text(self.raw.get("apiVersion"))

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def name(self) -> str:
        metadata = mapping(self.raw.get("metadata"))
        return text(metadata.get("name")) or text(metadata.get("generateName"))

    @property
    def key(self) -> tuple[str, str, str]:
        """What two versions of one object have in common: kind, namespace, name."""
        return self.kind, self.namespace, self.name

    def __str__(self) -> str:
        shown_name = self.name or "(without a name)"
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{shown_name}"


@dataclass(frozen=True, slots=True)
class Manifests:
    """Everything that files hold. foreign: documents that are no Kubernetes objects, and why."""

    items: tuple[Item, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    foreign: tuple[Unreadable, ...] = ()

    @classmethod
    def of(cls, documents: Iterable[Document | Unreadable], *, namespace: str = "default") -> Self:
        """Sorts documents; the items of a List become objects of their own."""
        items: list[Item] = []
        unreadable: list[Unreadable] = []
        foreign: list[Unreadable] = []
        for document in documents:
            if isinstance(document, Unreadable):
                unreadable.append(document)
                continue
            for raw in _unpacked(document.content):
                problem = _not_kubernetes(raw)
                if problem:
                    foreign.append(Unreadable(document.origin, problem))
                else:
                    items.append(_item(document.origin, raw, namespace))
        return cls(tuple(items), tuple(unreadable), tuple(foreign))

    def of_kind(self, *kinds: str) -> tuple[Item, ...]:
        """The objects of these kinds, in the order of the files."""
        return tuple(item for item in self.items if item.kind in kinds)


def _item(origin: Origin, raw: Raw, namespace: str) -> Item:
    if text(raw.get("kind")) in CLUSTER_SCOPED:
        return Item(origin, raw, "")
    return Item(origin, raw, text(mapping(raw.get("metadata")).get("namespace")) or namespace)


def _unpacked(content: Any) -> Iterator[Any]:
    """The objects of a list as kubectl and the API print it; of anything else the thing itself."""
    if not isinstance(content, Mapping) or not isinstance(content.get("items", ""), list | None):
        yield content
        return
    kind = text(content.get("kind"))
    if not kind.endswith("List"):
        yield content
        return
    # The API leaves kind and version out of the items of a typed list.
    common = {"apiVersion": content.get("apiVersion"), "kind": kind.removesuffix("List")}
    for raw in content["items"] or ():
        yield {**common, **raw} if isinstance(raw, Mapping) and kind != "List" else raw


def _not_kubernetes(raw: Any) -> str:
    if not isinstance(raw, Mapping):
        return f"found {shown(raw)}, a Kubernetes object is a mapping with apiVersion and kind"
    missing = [name for name in ("apiVersion", "kind") if not text(raw.get(name))]
    if missing:
        there = ", ".join(shown(str(key)) for key in list(raw)[:6])
        return f"no {' and no '.join(missing)}; found {f'the keys {there}' if there else 'no keys'}"
    if raw["kind"].endswith("List") and "items" in raw:
        return f"items: found {shown(raw['items'])}, allowed is a list"
    return ""
