"""Patches on raw objects: merge, strategic merge, JSON patch, apply. Pure.

Sources: RFC 7386 (merge), RFC 6902 (JSON patch), Kubernetes' server-side apply. Lists that the
API merges by key are in a table: only those of resources Dragoon writes. Strategic patches with
directives are refused, not half applied.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoon.errors import ApiInvalidError, InvalidInputError
from dragoon.kube.port import PatchKind

Path = tuple[str, ...]

LIST_KEYS: Final[Mapping[Path, tuple[str, ...]]] = {
    ("metadata", "ownerReferences"): ("uid",),
    ("metadata", "finalizers"): (),
    ("status", "reservedFor"): ("uid",),
    ("status", "devices"): ("driver", "pool", "device", "shareID"),
    ("status", "devices", "conditions"): ("type",),
    ("status", "conditions"): ("type",),
    ("spec", "taints"): ("key", "effect"),
    ("spec", "containers"): ("name",),
    ("spec", "schedulingGates"): ("name",),
    ("spec", "resourceClaims"): ("name",),
    ("spec", "tolerations"): ("key", "operator", "value", "effect"),
}
"""Lists merged item by item, and by which keys; no keys: a set of strings."""


def check_shape(patch: Any, kind: PatchKind, field_manager: str | None) -> None:
    """Raises InvalidInputError for a patch that does not have the shape of its kind."""
    expected: type = list if kind is PatchKind.JSON else dict
    if not isinstance(patch, expected):
        raise InvalidInputError(
            f"patch: found {type(patch).__name__}, a {kind.name} patch is a {expected.__name__}"
        )
    if kind is PatchKind.APPLY and not field_manager:
        raise InvalidInputError("field_manager: found none, an APPLY patch needs one")


def patched(kind: PatchKind, target: Any, patch: Any) -> Any:
    """The object after a patch of any kind but APPLY; target is changed in place by some."""
    if kind is PatchKind.JSON:
        return json_patched(target, patch)
    return strategic(target, patch) if kind is PatchKind.STRATEGIC else merged(target, patch)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, lists are replaced."""
    return _merged(target, patch, keys=None, path=())


def strategic(target: Any, patch: Any) -> Any:
    """Like a merge, but lists of LIST_KEYS are merged by key. Directives raise ApiInvalidError."""
    return _merged(target, patch, keys=LIST_KEYS, path=())


def applied(target: Any, config: Any, previous: Any) -> Any:
    """Server-side apply by one manager, forced: what it applied before and not now is removed.

    previous is what the same manager applied last (None at first). Fields of other managers stay.
    """
    remaining = target if previous is None else _pruned(target, previous, config, ())
    return _merged(remaining, config, keys=LIST_KEYS, path=())


def json_patched(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """RFC 6902: add, remove, replace, test; changes target in place.

    Raises ApiInvalidError where an operation fails.
    """
    document = {"": target}
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise ApiInvalidError(f"patch: found {operation!r}, an operation is an object")
        _operate(document, operation)
    return document[""]


def _merged(target: Any, patch: Any, *, keys: Mapping[Path, Any] | None, path: Path) -> Any:
    if isinstance(patch, list) and keys is not None and path in keys:
        have = target if isinstance(target, list) else []
        return _merged_list(have, patch, keys=keys, path=path)
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if keys is not None and name.startswith("$"):
            raise ApiInvalidError(f"patch: directive {name} at {_shown(path)} is not supported")
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value, keys=keys, path=(*path, name))
    return result


def _merged_list(have: list[Any], patch: list[Any], *, keys: Mapping[Path, Any], path: Path) -> Any:
    names = keys[path]
    if not names:
        return [*have, *(value for value in patch if value not in have)]
    result = list(have)
    places = {_identity(entry, names): index for index, entry in enumerate(result)}
    for entry in patch:
        identity = _identity(entry, names)
        place = places.get(identity)
        old = None if place is None else result[place]
        new = _merged(old, entry, keys=keys, path=path)
        if place is None:
            places[identity] = len(result)
            result.append(new)
        else:
            result[place] = new
    return result


def _pruned(target: Any, previous: Any, config: Any, path: Path) -> Any:
    """Removes from target what `previous` set and `config` does not set any more."""
    if isinstance(previous, dict) and isinstance(target, dict):
        now = config if isinstance(config, dict) else {}
        result = dict(target)
        for name, value in previous.items():
            if name not in result:
                continue
            if isinstance(value, (dict, list)):
                result[name] = _pruned(result[name], value, now.get(name), (*path, name))
                if name not in now and not result[name]:
                    del result[name]
            elif name not in now:
                del result[name]
        return result
    if isinstance(previous, list) and isinstance(target, list) and path in LIST_KEYS:
        names = LIST_KEYS[path]
        kept = config if isinstance(config, list) else []
        gone = {_identity(entry, names) for entry in previous} - {
            _identity(entry, names) for entry in kept
        }
        return [entry for entry in target if _identity(entry, names) not in gone]
    return target if config is not None else None


def _identity(entry: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in names) if names else (entry,)


def _operate(document: dict[str, Any], operation: Mapping[str, Any]) -> None:
    verb = operation.get("op")
    pointer = str(operation.get("path", ""))
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    parent: Any = document
    for part in parts[:-1]:
        parent = _step(parent, part, pointer)
    last = parts[-1]
    if verb == "add":
        _add(parent, last, operation.get("value"), pointer)
    elif verb == "replace":
        _step(parent, last, pointer)
        parent[_place(parent, last)] = operation.get("value")
    elif verb == "remove":
        _step(parent, last, pointer)
        del parent[_place(parent, last)]
    elif verb == "test":
        if _step(parent, last, pointer) != operation.get("value"):
            raise ApiInvalidError(f"patch: test of {pointer} failed")
    else:
        raise ApiInvalidError(f"patch: op: found {verb!r}, allowed: add, remove, replace, test")


def _step(parent: Any, part: str, pointer: str) -> Any:
    try:
        return parent[_place(parent, part)]
    except (KeyError, IndexError, TypeError) as error:
        raise ApiInvalidError(f"patch: path: nothing at {pointer}") from error


def _add(parent: Any, last: str, value: Any, pointer: str) -> None:
    if isinstance(parent, list):
        place = len(parent) if last == "-" else _place(parent, last)
        if place > len(parent):
            raise ApiInvalidError(f"patch: path: {pointer} is outside the list")
        parent.insert(place, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise ApiInvalidError(f"patch: path: nothing at {pointer}")


def _place(parent: Any, part: str) -> Any:
    if not isinstance(parent, list):
        return part
    if not part.isdecimal():
        raise ApiInvalidError(f"patch: path: {part!r} is no index of a list")
    return int(part)


def _shown(path: Path) -> str:
    return ".".join(path) or "the top"
