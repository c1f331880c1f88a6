"""What writes to an in-process API server do to its store: admission, rules, then one change."""

import secrets
import string
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dragoon.errors import ApiConflictError, ApiInvalidError, ApiNotFoundError
from dragoon.kube import patching, writes
from dragoon.kube.faults import Faults
from dragoon.kube.port import Object, Resource
from dragoon.kube.store import Key, Store, copied, key_of
from dragoon.kube.traits import Findings, traits_of

Validator = Callable[[Object], Findings]
Admission = Callable[[Object], None]
"""Changes an object that is to be created, as a mutating policy does."""

_SUFFIX: Final = string.ascii_lowercase + string.digits


class Writer:
    """Writes into one store. What it returns is what is stored: copy it before it is handed out.

    Mutable: remembers what was applied by whom. validators, admission: by resource, as
    `memory.MemoryApi` is given them.
    """

    def __init__(
        self,
        store: Store,
        faults: Faults,
        *,
        validators: Mapping[Resource, Validator],
        admission: Mapping[Resource, Admission],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._faults = faults
        self._validators = validators
        self._admission = admission
        self._applied: dict[tuple[str, str, str | None], Any] = {}
        self._now = now

    def existing(self, resource: Resource, key: Key) -> Object:
        """What is stored. Raises ApiNotFoundError."""
        found = self._store.get(resource, key)
        if found is None:
            shown = "/".join(part for part in key if part)
            raise ApiNotFoundError(f"{resource.plural} {shown!r} not found", status=404)
        return found

    def create(self, resource: Resource, body: Object, *, dry_run: bool) -> Object:
        """Stores a new object, or says what would be stored. body may be changed."""
        key, new = self._new(resource, body)
        return new if dry_run else self._store.put(resource, key, new)

    def update(
        self, resource: Resource, key: Key, old: Object, body: Object, subresource: str | None
    ) -> Object:
        """Stores what a replace or a patch makes of an object."""
        self._faults.strip(resource, body)
        traits = traits_of(resource)
        # A copy: defaults are filled in place, and what is stored must never change.
        new = writes.updated(
            resource, traits, copied(old), body, subresource=subresource, now=self._stamp()
        )
        if new == old:  # A write that changes nothing makes no new version.
            return old
        self._validate(resource, new)
        stored = self._store.put(resource, key, new)
        meta = stored["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self._store.remove(resource, key)
        return stored

    def apply(
        self, resource: Resource, key: Key, config: Object, subresource: str | None, manager: str
    ) -> Object:
        """Server-side apply: of what a manager no longer names, what it named before is removed."""
        for field in ("apiVersion", "kind"):
            if not config.get(field):
                raise ApiInvalidError(f"{field}: an apply patch must have it", status=400)
        namespace, name = key
        own = {"name": name, **({"namespace": namespace} if namespace else {})}
        config = {**config, "metadata": {**(config.get("metadata") or {}), **own}}
        old = self._store.get(resource, key)
        if old is None:
            if subresource is not None:
                self.existing(resource, key)
            stored = self._store.put(resource, *self._new(resource, copied(config)))
        else:
            before = self._applied.get((old["metadata"]["uid"], manager, subresource))
            body = patching.applied(copied(old), config, before)
            stored = self.update(resource, key, old, body, subresource)
        self._applied[stored["metadata"]["uid"], manager, subresource] = config
        return stored

    def delete(self, resource: Resource, key: Key, old: Object) -> None:
        """Removes an object, or marks it as going where it has finalizers."""
        if not old["metadata"].get("finalizers"):
            self._store.remove(resource, key)
        elif not old["metadata"].get("deletionTimestamp"):
            going = {"deletionTimestamp": self._stamp(), "deletionGracePeriodSeconds": 0}
            self._store.put(resource, key, {**old, "metadata": {**old["metadata"], **going}})

    def _new(self, resource: Resource, body: Object) -> tuple[Key, Object]:
        """The object that a create would store, and where."""
        self._faults.strip(resource, body)
        writes.check_kind(resource, body)
        if resource in self._admission:
            self._admission[resource](body)
        meta = body["metadata"]
        name = meta.get("name") or _generated(resource, meta)
        key = key_of(resource, name, meta.get("namespace"))
        if self._store.get(resource, key) is not None:
            raise ApiConflictError(f"{resource.plural} {name!r} already exists", status=409)
        new = writes.created(
            resource, traits_of(resource), body, name=name, uid=str(uuid.uuid4()), now=self._stamp()
        )
        self._validate(resource, new)
        return key, new

    def _validate(self, resource: Resource, new: Object) -> None:
        validator = self._validators.get(resource)
        if validator is not None:
            writes.refuse(resource, new["metadata"]["name"], validator(copied(new)))

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _generated(resource: Resource, meta: Mapping[str, Any]) -> str:
    prefix = meta.get("generateName")
    if not prefix:
        writes.refuse(resource, "", ["metadata.name: Required value: name or generateName"])
    # The server cuts the prefix so that five random characters fit into 63.
    return str(prefix)[:58] + "".join(secrets.choice(_SUFFIX) for _ in range(5))
