"""What a claim was given: its devices as their slices describe them, and how ready they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoon.diagnose.cluster import results
from dragoon.diagnose.manifests import Raw, listed, mapping, text
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.publish.attributes import PRODUCT, PROFILE, TYPE

_WORDS = (PRODUCT, PROFILE, TYPE)


@dataclass(frozen=True, slots=True)
class GivenDevice:
    """One result of an allocation. description: product and memory, empty if no slice has it.

    consumed: of a share. conditions: what the driver says of it, such as `Ready=False (reason)`.
    """

    request: str
    driver: str
    pool: str
    device: str
    description: str = ""
    consumed: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    is_published: bool = True

    def data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return {
            "request": self.request,
            "driver": self.driver,
            "pool": self.pool,
            "device": self.device,
            "description": self.description,
            "consumedCapacity": dict(self.consumed),
            "conditions": list(self.conditions),
            "published": self.is_published,
        }

    def __str__(self) -> str:
        parts = [f"request {self.request}: {self.device}"]
        if self.description:
            parts.append(self.description)
        if not self.is_published:
            parts.append("no slice has it any more")
        parts += [f"{name} {amount}" for name, amount in self.consumed]
        return ", ".join((*parts, *self.conditions))


def given(claim: Raw, snapshot: ClusterSnapshot) -> tuple[GivenDevice, ...]:
    """The devices of a claim, none if it has none."""
    return tuple(_device(result, claim, snapshot) for result in results(claim))


def nodes_of(claim: Raw) -> tuple[str, ...]:
    """The nodes on which the claim can be used, none where its allocation does not say."""
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    terms = listed(mapping(allocation.get("nodeSelector")).get("nodeSelectorTerms"))
    return tuple(
        str(value)
        for term in map(mapping, terms)
        for field in map(mapping, listed(term.get("matchFields")))
        if field.get("key") == "metadata.name"
        for value in listed(field.get("values"))
    )


def _device(result: Raw, claim: Raw, snapshot: ClusterSnapshot) -> GivenDevice:
    driver, pool = text(result.get("driver")), text(result.get("pool"))
    name = text(result.get("device"))
    raw = _published(snapshot, driver, pool, name)
    consumed = mapping(result.get("consumedCapacity"))
    return GivenDevice(
        request=text(result.get("request")),
        driver=driver,
        pool=pool,
        device=name,
        description="" if raw is None else _described(raw),
        consumed=tuple((str(key), str(amount)) for key, amount in consumed.items()),
        conditions=tuple(_conditions(claim, result)),
        is_published=raw is not None,
    )


def _published(snapshot: ClusterSnapshot, driver: str, pool: str, name: str) -> Raw | None:
    for slice_ in snapshot.slices:
        spec = mapping(slice_.get("spec"))
        if spec.get("driver") == driver and mapping(spec.get("pool")).get("name") == pool:
            for device in map(mapping, listed(spec.get("devices"))):
                if device.get("name") == name:
                    return device
    return None


def _described(device: Raw) -> str:
    attributes = mapping(device.get("attributes"))
    words = [str(value) for name in _WORDS for value in mapping(attributes.get(name)).values()][:1]
    memory = mapping(mapping(device.get("capacity")).get("memory")).get("value")
    return ", ".join((*words, f"memory {memory}") if memory else words)


def _conditions(claim: Raw, result: Raw) -> Iterator[str]:
    for entry in map(mapping, listed(mapping(claim.get("status")).get("devices"))):
        if all(entry.get(part) == result.get(part) for part in ("driver", "pool", "device")):
            for condition in map(mapping, listed(entry.get("conditions"))):
                why = text(condition.get("message")) or text(condition.get("reason"))
                said = f"{condition.get('type')}={condition.get('status')}"
                yield f"{said} ({why})" if why else said
