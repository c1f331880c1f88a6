"""What an API server makes of a write: the object it would store, or the refusal. Pure.

Source: apimachinery's rest strategies; the kinds' own rules are in `traits`.
"""

import re
from typing import Final

from dragoon.errors import ApiConflictError, ApiInvalidError, ApiNotFoundError
from dragoon.kube.port import Object, Resource
from dragoon.kube.traits import Findings, Traits, at

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_LIMIT = 253
_SERVER_OWNED: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
)


def created(
    resource: Resource, traits: Traits, body: Object, *, name: str, uid: str, now: str
) -> Object:
    """The object a create stores, still without a resourceVersion; body may be changed."""
    check_kind(resource, body)
    meta = body["metadata"]
    if not _NAME.fullmatch(name) or len(name) > _NAME_LIMIT:
        raise ApiInvalidError(
            f"metadata.name: Invalid value: {name!r}: a lower-case DNS subdomain of at most "
            f"{_NAME_LIMIT} characters is allowed",
            status=422,
        )
    own: Object = {"name": name, "uid": uid, "creationTimestamp": now}
    if traits.generation:
        own["generation"] = 1
    kept = {
        k: v
        for k, v in meta.items()
        if k not in _SERVER_OWNED or k in {"namespace", "generateName"}
    }
    new = {
        **body,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**kept, **own},
    }
    if traits.status and not traits.creates_status:
        new.pop("status", None)
    traits.default(None, new, now)
    refuse(resource, name, traits.check(None, new))
    return new


def updated(
    resource: Resource,
    traits: Traits,
    old: Object,
    body: Object,
    *,
    subresource: str | None,
    now: str,
) -> Object:
    """The object a replace or a patch stores; it may share parts with old and body."""
    check_kind(resource, body)
    check_preconditions(resource, old, body["metadata"])
    new = _composed(traits, old, body, subresource)
    name = old["metadata"]["name"]
    for path in traits.immutable:
        if at(old, path) != at(new, path):
            refuse(resource, name, [f"{'.'.join(path)}: Invalid value: field is immutable"])
    if traits.generation and new.get("spec") != old.get("spec"):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    traits.default(old, new, now)
    refuse(resource, name, [*_check_finalizers(old, new), *traits.check(old, new)])
    return new


def check_preconditions(resource: Resource, old: Object, wanted: Object) -> None:
    """Raises ApiConflictError unless uid and resourceVersion, where wanted, are those of old."""
    have = old["metadata"]
    for field in ("uid", "resourceVersion"):
        expected = wanted.get(field)
        if expected and expected != have[field]:
            raise ApiConflictError(
                f"{resource.plural} {have['name']!r}: the object has been modified: {field} is "
                f"{have[field]}, not {expected}",
                status=409,
            )


def check_kind(resource: Resource, body: Object) -> None:
    """Raises ApiInvalidError (400) for a body of another kind or without metadata."""
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(field, expected) != expected:
            raise ApiInvalidError(
                f"{field}: found {body[field]!r}, {resource.plural} have {expected!r}", status=400
            )
    if not isinstance(body.get("metadata"), dict):
        raise ApiInvalidError("metadata: found none, it must be an object", status=400)


def refuse(resource: Resource, name: str, findings: Findings) -> None:
    """Raises ApiInvalidError (422) where there are findings."""
    texts = [str(finding) for finding in findings]
    if texts:
        raise ApiInvalidError(
            f"{resource.kind} {name!r} is invalid: {'; '.join(texts)}", status=422
        )


def _composed(traits: Traits, old: Object, body: Object, subresource: str | None) -> Object:
    """Takes from the body only what this endpoint may write."""
    have = old["metadata"]
    if subresource is not None:
        if subresource != "status" or not traits.status:
            raise ApiNotFoundError(f"no subresource {subresource!r} here", status=404)
        new = {**old, "metadata": dict(have)}
        _take(new, "status", body)
        return new
    meta = {k: v for k, v in body["metadata"].items() if k not in _SERVER_OWNED}
    meta.update({k: have[k] for k in (*_SERVER_OWNED, "resourceVersion") if k in have})
    new = {**body, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": meta}
    if traits.status:
        _take(new, "status", old)
    return new


def _take(new: Object, field: str, source: Object) -> None:
    if field in source:
        new[field] = source[field]
    else:
        new.pop(field, None)


def _check_finalizers(old: Object, new: Object) -> Findings:
    added = set(new["metadata"].get("finalizers") or ()) - set(
        old["metadata"].get("finalizers") or ()
    )
    if new["metadata"].get("deletionTimestamp") and added:
        yield f"metadata.finalizers: Forbidden: no new finalizers while deleting: {sorted(added)}"
