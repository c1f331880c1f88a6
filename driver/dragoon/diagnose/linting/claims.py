"""A claim's wishes wherever they stand: in claims and templates, in the layout of any version."""

from collections.abc import Iterator
from dataclasses import dataclass

from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text

CLAIM: str = "ResourceClaim"
TEMPLATE: str = "ResourceClaimTemplate"


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """One request, or one alternative of it. name: `request` or `request/alternative`.

    path: of its fields in the object.
    """

    name: str
    path: str
    fields: Raw

    @property
    def class_name(self) -> str:
        return text(self.fields.get("deviceClassName"))


@dataclass(frozen=True, slots=True, eq=False)
class ClaimSpec:
    """The spec of a claim or template, found also where it stands one level too deep or high."""

    item: Item
    path: str
    raw: Raw

    @property
    def devices(self) -> Raw:
        return mapping(self.raw.get("devices"))

    def requests(self) -> Iterator[tuple[str, Raw]]:
        """(path, request) of every request that is an object."""
        for index, request in enumerate(listed(self.devices.get("requests"))):
            if isinstance(request, dict):
                yield f"{self.path}.devices.requests[{index}]", request

    def wishes(self) -> Iterator[Wish]:
        """Every request and alternative, in the layout of v1 or of v1beta1."""
        for path, request in self.requests():
            name = text(request.get("name"))
            alternatives = listed(request.get("firstAvailable"))
            if isinstance(request.get("exactly"), dict):
                yield Wish(name, f"{path}.exactly", request["exactly"])
            elif not alternatives:
                yield Wish(name, path, request)
            for index, one in enumerate(alternatives):
                if isinstance(one, dict):
                    full = f"{name}/{text(one.get('name'))}"
                    yield Wish(full, f"{path}.firstAvailable[{index}]", one)

    def names(self) -> tuple[str, ...]:
        """What a constraint or a config can name: requests, and alternatives with their parent."""
        of_requests = [text(request.get("name")) for _, request in self.requests()]
        return tuple(dict.fromkeys([*of_requests, *(wish.name for wish in self.wishes())]))

    def request_names(self) -> tuple[str, ...]:
        """What a container can name."""
        return tuple(text(request.get("name")) for _, request in self.requests())


def claim_spec(item: Item) -> ClaimSpec | None:
    """The wishes of a claim or template, None for other kinds."""
    if item.kind not in {CLAIM, TEMPLATE}:
        return None
    outer = mapping(item.raw.get("spec"))
    inner = outer.get("spec")
    if isinstance(inner, dict) and "devices" not in outer:
        return ClaimSpec(item, "spec.spec", inner)
    return ClaimSpec(item, "spec", outer)
