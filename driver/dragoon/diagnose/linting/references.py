"""Names that must be there: of claims and requests in pods, of requests in claims (case C40)."""

from collections.abc import Iterator
from typing import Any, Final

from dragoon.diagnose.documents import Origin
from dragoon.diagnose.linting.claims import CLAIM, TEMPLATE, ClaimSpec, claim_spec
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.near import did_you_mean, near
from dragoon.diagnose.workloads import PodTemplate, pod_templates

_KINDS: Final = {"resourceClaimName": CLAIM, "resourceClaimTemplateName": TEMPLATE}
_ENTRY_FIELDS: Final = ("name", *_KINDS)
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def check(item: Item, context: Context) -> Iterator[Finding]:
    """Names in pods and in claims that lead nowhere."""
    for pod in pod_templates(item):
        yield from pod_references(pod, context)
    spec = claim_spec(item)
    if spec is not None:
        yield from _in_claim(spec)
        yield from _classes(spec, context)


def pod_references(pod: PodTemplate, context: Context) -> Iterator[Finding]:
    """What is wrong with the claims that a pod and its containers name."""
    entries: dict[str, Raw] = {}
    told: set[str] = set()
    for index, entry in enumerate(listed(pod.spec.get("resourceClaims"))):
        path = f"{pod.path}.resourceClaims[{index}]"
        if not isinstance(entry, dict):
            yield finding("DRG205", pod.item, path, entry, "an object with name")
            continue
        name = text(entry.get("name"))
        if name in entries:
            yield finding("DRG207", pod.item, f"{path}.name", f"a second claim named {name}")
        entries[name] = entry
        wrong = tuple(_entry(pod.item, entry, path, context))
        if wrong:
            told.add(name)
        yield from wrong
    used: set[str] = set()
    for path, container in _containers(pod):
        yield from _container(pod.item, container, path, entries, context)
        claims = listed(mapping(container.get("resources")).get("claims"))
        used |= {text(mapping(use).get("name")) for use in claims}
    for name in entries:
        # Enough has been said of a wrong entry, and of a near miss in a container.
        if name not in used | told and not any(
            near(other, [name]) for other in used - entries.keys()
        ):
            yield finding(
                "DRG308",
                pod.item,
                f"{pod.path}.resourceClaims",
                f"claim {name}, which no container names",
                f"resources: {{claims: [{{name: {name}}}]}} in a container",
            )


def _entry(item: Item, entry: Raw, path: str, context: Context) -> Iterator[Finding]:
    if "source" in entry:
        source = {k: v for k, v in mapping(entry["source"]).items() if k in _KINDS}
        flat = ", ".join(f"{k}: {v}" for k, v in source.items()) or "resourceClaimName: ..."
        yield finding(
            "DRG301",
            item,
            f"{path}.source",
            "source, which was removed in Kubernetes 1.31",
            f"{{name: {text(entry.get('name'))}, {flat}}}",
        )
        return
    for field in entry:
        if field not in _ENTRY_FIELDS:
            yield finding(
                "DRG204", item, f"{path}.{field}", field, did_you_mean(field, _ENTRY_FIELDS)
            )
    named = [field for field in _KINDS if entry.get(field)]
    if len(named) == 2:
        yield finding("DRG302", item, path, f"both {' and '.join(named)}", "one of them")
    if not named and all(field in _ENTRY_FIELDS for field in entry):
        yield finding("DRG302", item, path, "no claim", f"one of {', '.join(_KINDS)}")
    for field in named if len(named) == 1 else ():
        yield from _target(item, text(entry.get(field)), f"{path}.{field}", _KINDS[field], context)


def _target(item: Item, name: str, path: str, kind: str, context: Context) -> Iterator[Finding]:
    """Whether the claim or template is there; without a cluster only what is elsewhere counts."""
    there = [(namespace, known) for namespace, known, _ in context.objects(kind)]
    if (item.namespace, name) in there:
        return
    elsewhere = sorted(namespace for namespace, known in there if known == name)
    here = [known for namespace, known in there if namespace == item.namespace]
    if elsewhere:
        yield finding(
            "DRG306",
            item,
            path,
            f"{name}, which is in namespace {', '.join(elsewhere)}; the pod is in {item.namespace}",
            f"a {kind} in namespace {item.namespace}",
        )
    elif context.snapshot is not None:
        yield finding("DRG307", item, path, f"{name}, which is not there", did_you_mean(name, here))
    elif near(name, here):
        yield finding(
            "DRG307", item, path, f"{name}, which is not in the files", did_you_mean(name, here)
        )


def _containers(pod: PodTemplate) -> Iterator[tuple[str, Raw]]:
    for field in _CONTAINERS:
        for index, container in enumerate(listed(pod.spec.get(field))):
            yield f"{pod.path}.{field}[{index}]", mapping(container)


def _container(
    item: Item, container: Raw, path: str, entries: dict[str, Raw], context: Context
) -> Iterator[Finding]:
    claims = listed(mapping(container.get("resources")).get("claims"))
    seen: dict[str, str] = {}
    for index, use in enumerate(map(mapping, claims)):
        where = f"{path}.resources.claims[{index}]"
        name, request = text(use.get("name")), text(use.get("request"))
        if name in seen:
            before = f"request {seen[name]}" if seen[name] else "the whole claim"
            yield finding(
                "DRG304", item, where, f"{_use(name, request)}; {before} is named already"
            )
        seen.setdefault(name, request)
        if name not in entries:
            yield finding("DRG303", item, f"{where}.name", name, did_you_mean(name, entries))
        elif request:
            yield from _request(item, entries[name], request, f"{where}.request", context)


def _use(name: str, request: str) -> str:
    return f"claim {name}, request {request}" if request else f"claim {name}"


def _request(
    item: Item, entry: Raw, request: str, path: str, context: Context
) -> Iterator[Finding]:
    names = _requests_of(item.namespace, entry, context)
    if names is None or request in names:
        return
    parent = request.partition("/")[0]
    instead = f"{parent}: the alternatives of a request go by its name" if parent in names else ""
    yield finding("DRG305", item, path, request, instead or did_you_mean(request, names))


def _requests_of(namespace: str, entry: Raw, context: Context) -> tuple[str, ...] | None:
    """The requests of the claim that a pod's entry means, None where it is not known.

    Of a template in another namespace too: that it is elsewhere is another finding.
    """
    wrapped = mapping(entry.get("source")) or entry
    for field, kind in _KINDS.items():
        name = text(wrapped.get(field))
        found = [(ns, raw) for ns, known, raw in context.objects(kind) if name and known == name]
        found.sort(key=lambda one: one[0] != namespace)
        if found:
            return _names(kind, found[0][1])
    return None


def _names(kind: str, raw: Raw) -> tuple[str, ...]:
    spec = claim_spec(Item(Origin(""), {**raw, "kind": kind}, ""))
    return () if spec is None else spec.request_names()


def _in_claim(spec: ClaimSpec) -> Iterator[Finding]:
    for part in ("constraints", "config"):
        for index, entry in enumerate(listed(spec.devices.get(part))):
            for position, name in enumerate(listed(mapping(entry).get("requests"))):
                if name not in spec.names():
                    path = f"{spec.path}.devices.{part}[{index}].requests[{position}]"
                    yield finding(
                        "DRG209", spec.item, path, name, did_you_mean(str(name), spec.names())
                    )


def _classes(spec: ClaimSpec, context: Context) -> Iterator[Finding]:
    if context.snapshot is None:
        return
    known: list[Any] = [name for _, name, _ in context.objects("DeviceClass")]
    for wish in spec.wishes():
        if wish.class_name and wish.class_name not in known:
            yield finding(
                "DRG309",
                spec.item,
                f"{wish.path}.deviceClassName",
                f"{wish.class_name}, which is not there",
                did_you_mean(wish.class_name, known),
            )
