"""What a snapshot shows of an installation: our slices, their devices, our pods."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoon.api.names import CLASS_GPU, CLASS_MIG, CLASS_SHARED, CLASS_SIMULATED
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.pods import has_ended
from dragoon.diagnose.snapshot import ClusterSnapshot, NotReadError, identity
from dragoon.kube.port import PODS, Resource

PART_OF: Final = "app.kubernetes.io/part-of"
COMPONENT: Final = "app.kubernetes.io/component"
OURS: Final = "dragoon"
PLUGIN: Final = "plugin"
CONTROLLER: Final = "controller"

_CLASSES: Final = {"gpu": CLASS_GPU, "mig": CLASS_MIG, "shared": CLASS_SHARED}


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A device of ours in a slice. taints: of the slice; rules add more."""

    node: str
    pool: str
    raw: Raw

    @property
    def name(self) -> str:
        """Its name."""
        return text(self.raw.get("name"))

    @property
    def taints(self) -> tuple[Raw, ...]:
        """Its taints."""
        return tuple(map(mapping, listed(self.raw.get("taints"))))

    @property
    def form(self) -> str:
        """The attribute `type`: gpu, mig or shared."""
        return str(self.attribute("type") or "")

    @property
    def class_name(self) -> str:
        """The DeviceClass that selects it."""
        if self.attribute("simulated"):
            return CLASS_SIMULATED
        return _CLASSES.get(self.form, CLASS_GPU)

    def attribute(self, name: str) -> Any:
        """The value of an attribute of ours, None where it has none."""
        typed = mapping(mapping(self.raw.get("attributes")).get(name))
        return next(iter(typed.values()), None)


def objects_of(snapshot: ClusterSnapshot, resource: Resource) -> tuple[Raw, ...]:
    """All objects of a kind. Raises NotReadError where they could not be listed."""
    for note in snapshot.missing:
        if note.startswith(f"{resource.plural}: "):
            raise NotReadError(note)
    return snapshot.objects(resource.kind)


def slices_of(snapshot: ClusterSnapshot, driver: str) -> Iterator[Raw]:
    """The slices of our driver."""
    return (one for one in snapshot.slices if mapping(one.get("spec")).get("driver") == driver)


def devices_of(snapshot: ClusterSnapshot, driver: str) -> Iterator[Published]:
    """Every device of ours, in the newest generation of its pool."""
    for pool, slices in pools_of(snapshot, driver).items():
        for spec in (mapping(one.get("spec")) for one in slices):
            for device in map(mapping, listed(spec.get("devices"))):
                yield Published(text(spec.get("nodeName")), pool, device)


def pools_of(snapshot: ClusterSnapshot, driver: str) -> dict[str, list[Raw]]:
    """The slices of each pool of our driver, those of its newest generation only."""
    found: dict[str, dict[int, list[Raw]]] = {}
    for one in slices_of(snapshot, driver):
        pool = mapping(mapping(one.get("spec")).get("pool"))
        generation = pool.get("generation")
        number = generation if isinstance(generation, int) else 0
        found.setdefault(text(pool.get("name")), {}).setdefault(number, []).append(one)
    return {name: slices[max(slices)] for name, slices in found.items()}


def pods_of(snapshot: ClusterSnapshot, component: str) -> Iterator[Raw]:
    """The living pods of one of our two processes."""
    for pod in objects_of(snapshot, PODS):
        metadata = mapping(pod.get("metadata"))
        labels = mapping(metadata.get("labels"))
        ours = labels.get(PART_OF) == OURS and labels.get(COMPONENT) == component
        if ours and not has_ended(pod):
            yield pod


def is_ready(pod: Raw) -> bool:
    """Whether the pod has the condition Ready."""
    conditions = map(mapping, listed(mapping(pod.get("status")).get("conditions")))
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def full_name(raw: Raw) -> str:
    """`namespace/name`."""
    return "/".join(filter(None, identity(raw)))
