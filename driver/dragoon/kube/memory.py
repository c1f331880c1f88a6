"""An API server in this process: the port `kube.port.Api` on an in-memory store.

For tests and `dragoon demo`. It behaves like kube-apiserver where Dragoon relies on it: versions,
conflicts, generations, finalizers, status subresources, the rules of resource.k8s.io, selectors,
watches that end in 410. It does not check permissions or that a namespace exists, and deletes pods
without a grace period.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from dragoon.errors import ApiInvalidError, ApiUnavailableError
from dragoon.kube import patching, paths, writes
from dragoon.kube.faults import Call, Faults
from dragoon.kube.port import PODS, Listing, Object, PatchKind, Resource, WatchEvent
from dragoon.kube.selecting import Matcher, matcher
from dragoon.kube.store import Change, Store, copied, key_of
from dragoon.kube.traits import known_groups, known_plurals, traits_of
from dragoon.kube.writing import Admission, Validator, Writer

_GROUPS = Resource("", "", "apis", "APIGroupList", namespaced=False)


class MemoryApi:
    """The API server. Every object is copied on its way in and out.

    validators: extra checks of a whole object per resource; each finding makes the write invalid.
    admission: what policies make of new objects, per resource.
    git_version: what it calls itself.
    groups: API groups and their versions that it claims to have beside, or instead of, those of the
    table of traits; it stores any. `more_groups`, `more_plurals` (by group, version) may be
    changed. history: how many changes a watch may lag behind before it gets 410. bookmark_interval:
    seconds between the bookmarks of a silent watch.
    """

    def __init__(
        self,
        *,
        validators: Mapping[Resource, Validator] | None = None,
        admission: Mapping[Resource, Admission] | None = None,
        git_version: str = "v1.37.0-dragoon-memory",
        groups: Mapping[str, tuple[str, ...]] | None = None,
        history: int = 10_000,
        bookmark_interval: float = 60.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.git_version = git_version
        self.more_groups = dict(groups or {})
        self.more_plurals: dict[tuple[str, str], frozenset[str]] = {}
        self._store = Store(history)
        self._bookmark_interval = bookmark_interval
        self.faults = Faults(self._store.wake)
        self._writer = Writer(
            self._store,
            self.faults,
            validators=validators or {},
            admission={} if admission is None else admission,
            now=now,
        )

    @property
    def resource_version(self) -> str:
        """The version of the last write."""
        return str(self._store.revision)

    def compact(self) -> None:
        """Forgets the history: watches from older versions get 410."""
        self._store.compact()

    def bookmark(self) -> None:
        """Sends a bookmark on every open watch."""
        self._store.bookmark()

    async def version(self) -> str:
        return self.git_version

    async def groups(self) -> Mapping[str, tuple[str, ...]]:
        await self.faults.meet(Call("groups", _GROUPS))
        return {**known_groups(), **self.more_groups}

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        await self.faults.meet(Call("plurals", _GROUPS, group))
        return self.more_plurals.get((group, version)) or known_plurals(group, version)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        paths.require_namespace(resource, namespace)
        call = Call("get", resource, name, namespace)
        await self.faults.meet(call)
        found = copied(self._writer.existing(resource, key_of(resource, name, namespace)))
        await self.faults.meet(call, late=True)
        return found

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> Listing:
        call = Call("list", resource, namespace=namespace)
        await self.faults.meet(call)
        matches = matcher(fields, labels, traits_of(resource).selectable)
        found = self._store.items(resource, _scope(resource, namespace))
        answer = Listing(
            items=tuple(copied(entry) for entry in found if matches(entry)),
            resource_version=self.resource_version,
        )
        await self.faults.meet(call, late=True)
        return answer

    async def pages(
        self,
        resource: Resource,
        *,
        size: int,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[Listing, None]:
        whole = await self.list(resource, namespace=namespace, fields=fields, labels=labels)
        for start in range(0, max(1, len(whole.items)), size):
            yield Listing(whole.items[start : start + size], whole.resource_version)

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
        labels: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        await self.faults.meet(Call("watch", resource, namespace=namespace))
        matches = _scoped(
            matcher(fields, labels, traits_of(resource).selectable), resource, namespace
        )
        cuts, ends, bookmarks = self.faults.cuts, self.faults.ends, self._store.bookmarks
        seen = _revision(resource_version)
        if seen == 0:
            seen = self._store.revision
            for entry in [e for e in self._store.items(resource) if matches(e)]:
                yield WatchEvent("ADDED", copied(entry))
        while self.faults.ends == ends:
            changes = self._store.since(resource, seen)
            for event in [_event(change, matches) for change in changes]:
                self._check_cut(cuts)
                if event is not None:
                    yield event
            self._check_cut(cuts)
            if changes:
                seen = changes[-1].revision
                continue
            seen = self._store.revision
            if self._store.bookmarks == bookmarks and await self._woken():
                continue
            bookmarks = self._store.bookmarks
            yield _bookmark(resource, seen)

    async def create(self, resource: Resource, body: Object, *, dry_run: bool = False) -> Object:
        sent = copied(body)
        namespace = paths.home(resource, sent)
        call = Call("create", resource, (sent.get("metadata") or {}).get("name", ""), namespace)
        await self.faults.meet(call)
        answer = copied(self._writer.create(resource, sent, dry_run=dry_run))
        await self.faults.meet(call, late=True)
        return answer

    async def replace(
        self, resource: Resource, body: Object, *, subresource: str | None = None
    ) -> Object:
        sent = copied(body)
        meta = sent.get("metadata") or {}
        name, namespace = meta.get("name", ""), meta.get("namespace")
        paths.require_namespace(resource, namespace)
        call = Call("replace", resource, name, namespace, subresource)
        await self.faults.meet(call)
        key = key_of(resource, name, namespace)
        old = self._writer.existing(resource, key)
        if not meta.get("resourceVersion") and not traits_of(resource).unconditional:
            writes.refuse(resource, name, ["metadata.resourceVersion: must be specified"])
        answer = copied(self._writer.update(resource, key, old, sent, subresource))
        await self.faults.meet(call, late=True)
        return answer

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        kind: PatchKind = PatchKind.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        patching.check_shape(patch, kind, field_manager)
        paths.require_namespace(resource, namespace)
        call = Call("patch", resource, name, namespace, subresource)
        await self.faults.meet(call)
        key = key_of(resource, name, namespace)
        sent = copied(patch)
        if kind is PatchKind.APPLY:
            stored = self._writer.apply(resource, key, sent, subresource, str(field_manager))
        else:
            old = self._writer.existing(resource, key)
            stored = self._writer.update(
                resource, key, old, patching.patched(kind, copied(old), sent), subresource
            )
        answer = copied(stored)
        await self.faults.meet(call, late=True)
        return answer

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> None:
        paths.require_namespace(resource, namespace)
        call = Call("delete", resource, name, namespace)
        await self.faults.meet(call)
        key = key_of(resource, name, namespace)
        old = self._writer.existing(resource, key)
        writes.check_preconditions(resource, old, {"uid": uid, "resourceVersion": resource_version})
        self._writer.delete(resource, key, old)
        await self.faults.meet(call, late=True)

    async def evict(self, name: str, *, namespace: str, uid: str | None = None) -> None:
        await self.faults.meet(Call("create", PODS, name, namespace, "eviction"))
        await self.delete(PODS, name, namespace=namespace, uid=uid)

    async def close(self) -> None:
        """Nothing to close: the store lives as long as this object."""

    def _check_cut(self, cuts: int) -> None:
        if self.faults.cuts != cuts:
            raise ApiUnavailableError("the watch was cut")

    async def _woken(self) -> bool:
        """Waits for the store; False when it is time for a bookmark."""
        try:
            async with asyncio.timeout(self._bookmark_interval):
                await self._store.pulse()
        except TimeoutError:
            return False
        return True


def _scope(resource: Resource, namespace: str | None) -> str | None:
    return namespace if resource.namespaced else None


def _scoped(matches: Matcher, resource: Resource, namespace: str | None) -> Matcher:
    scope = _scope(resource, namespace)
    if scope is None:
        return matches
    return lambda found: found["metadata"].get("namespace") == scope and matches(found)


def _revision(text: str) -> int:
    """A resourceVersion as a number; none at all and "0" mean: from what is there now."""
    if text and not text.isdecimal():
        raise ApiInvalidError(f"resourceVersion: Invalid value: {text!r}", status=400)
    return int(text or "0")


def _event(change: Change, matches: Matcher) -> WatchEvent | None:
    """What a watch with this selector sees of a change."""
    before = change.old is not None and matches(change.old)
    if change.new is not None and matches(change.new):
        return WatchEvent("MODIFIED" if before else "ADDED", copied(change.new))
    if not before or change.old is None:
        return None
    gone = copied(change.old)
    gone["metadata"]["resourceVersion"] = str(change.revision)
    return WatchEvent("DELETED", gone)


def _bookmark(resource: Resource, revision: int) -> WatchEvent:
    return WatchEvent(
        "BOOKMARK",
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"resourceVersion": str(revision), "creationTimestamp": None},
        },
    )
