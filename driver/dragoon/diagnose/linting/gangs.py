"""What makes pods a gang: one label and a few annotations, which no API server checks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoon.api import gang, limits
from dragoon.diagnose.linting.finding import Context, Finding, finding
from dragoon.diagnose.manifests import Item, Raw, mapping
from dragoon.diagnose.near import did_you_mean
from dragoon.diagnose.workloads import PodTemplate, pod_templates

_SCOPES: Final = ("name", "owner")
_NAME_LENGTH: Final = 63
_ALLOWED: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    gang.ANNOTATION_SIZE: (gang.members_in, gang.SIZES),
    gang.ANNOTATION_SCOPE: (_SCOPES.__contains__, " or ".join(_SCOPES)),
    gang.ANNOTATION_SOURCE: (bool, "a name of docs/gang-sources.md"),
}
"""Of each annotation whether a text will do, and what will."""


def check(item: Item, _context: Context) -> Iterator[Finding]:
    """Wrong values, and marks where nobody reads them."""
    pods = pod_templates(item)
    for pod in pods:
        yield from _of_pod(pod)
    yield from _of_owner(item, pods)


def _of_pod(pod: PodTemplate) -> Iterator[Finding]:
    where = f"{pod.path.rpartition('spec')[0]}metadata"
    name = pod.labels.get(gang.LABEL)
    if isinstance(name, str) and not limits.is_subdomain(name, _NAME_LENGTH):
        allowed = f"a lower-case DNS name of at most {_NAME_LENGTH} characters"
        yield finding("DRG701", pod.item, f"{where}.labels.{gang.LABEL}", name, allowed)
    for key, value in (*pod.labels.items(), *pod.annotations.items()):
        if _is_ours(key) and not isinstance(value, str):
            kind = "labels" if key in pod.labels else "annotations"
            yield finding("DRG702", pod.item, f"{where}.{kind}.{key}", value, _quoted(value))
    for key, (will_do, allowed) in _ALLOWED.items():
        value = pod.annotations.get(key)
        if isinstance(value, str) and not will_do(value):
            yield finding("DRG702", pod.item, f"{where}.annotations.{key}", value, allowed)
    yield from _misplaced(pod.item, where, pod.labels, pod.annotations, is_member=name is not None)


def _misplaced(
    item: Item, where: str, labels: Raw, annotations: Raw, *, is_member: bool
) -> Iterator[Finding]:
    """Marks of a pod that are misspelt, of the wrong sort, or without the label."""
    for kind, said, known in (
        ("labels", labels, (gang.LABEL,)),
        ("annotations", annotations, tuple(_ALLOWED)),
    ):
        for key in filter(_is_ours, said):
            path = f"{where}.{kind}.{key}"
            if key == gang.LABEL and kind == "annotations":
                yield finding("DRG703", item, path, "the label, as an annotation", "a label")
            elif key in _ALLOWED and kind == "labels":
                yield finding("DRG703", item, path, "an annotation, as a label", "an annotation")
            elif key not in known:
                names = (gang.LABEL, *_ALLOWED)
                yield finding("DRG703", item, path, key, did_you_mean(key, names))
            elif key != gang.LABEL and not is_member:
                yield finding("DRG703", item, path, f"no label {gang.LABEL}", "the label beside it")


def _of_owner(item: Item, pods: tuple[PodTemplate, ...]) -> Iterator[Finding]:
    """Marks of what makes the pods that stand on none of them."""
    metadata = mapping(item.raw.get("metadata"))
    for kind in ("labels", "annotations"):
        for key in filter(_is_ours, mapping(metadata.get(kind))):
            if pods and not any(key in (*pod.labels, *pod.annotations) for pod in pods):
                place = f"{pods[0].path.rpartition('spec')[0]}metadata.{kind}"
                path = f"metadata.{kind}.{key}"
                yield finding("DRG703", item, path, f"on the {item.kind}, not on its pods", place)


def _quoted(value: object) -> str:
    """What was meant by what YAML takes for something else."""
    text = "" if value is None else str(value)
    return f'text: "{text.lower() if isinstance(value, bool) else text}"'


def _is_ours(key: object) -> bool:
    return isinstance(key, str) and key.startswith(gang.LABEL)
