"""Whether gangs were whole when their first member was set free: judged of a history. Pure.

A gang is whole as soon as so many members as it has places have all their devices at one time.
Those that are deleted from then on are placed again on their own, and the others start, whatever
becomes of the claims of the deleted ones. If one that lives loses its devices the round was taken
back: the gang is not whole, and what deleted ones had does not count any more.

When the first gate of ours goes the gang is judged, once: its name is not used again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dragoon.api import gang
from dragoon.kube.port import CLAIMS, PODS, Object
from racecampaign.history import Event
from racecampaign.objects import allocated, claim_names, is_alive, is_gated


@dataclass(frozen=True)
class _Member:
    """A pod of a gang, alive or not."""

    name: str
    claims: tuple[str, ...]
    is_alive: bool

    def has_devices(self, given: set[str]) -> bool:
        """Whether all its claims are given."""
        return bool(self.claims) and given.issuperset(self.claims)


@dataclass
class _Gang:
    """A gang at one revision. size: places that it has. members: by UID."""

    size: int
    members: dict[str, _Member] = field(default_factory=dict)
    is_whole: bool = False
    is_judged: bool = False

    def count(self, given: set[str]) -> int:
        """How many members have their devices. It is whole from then on if that is enough."""
        found = sum(member.has_devices(given) for member in self.members.values())
        self.is_whole |= found >= self.size
        return found

    def lose(self, claim: str) -> None:
        """A claim was given, and is not any more."""
        living = {uid: member for uid, member in self.members.items() if member.is_alive}
        if any(claim in member.claims for member in living.values()):
            self.is_whole, self.members = False, living


class _Judge:
    """Sees one event after the other. given: the names of the claims that have devices now."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.found: list[str] = []
        self._gangs = {label: _Gang(size) for label, size in sizes.items()}
        self._given: set[str] = set()

    def see(self, event: Event) -> None:
        if event.resource == CLAIMS:
            self._claim(event)
        elif event.resource == PODS:
            self._pod(event)

    def _claim(self, event: Event) -> None:
        name = event.object["metadata"]["name"]
        if allocated(event.object) is not None and not event.is_gone:
            self._given.add(name)
        elif name in self._given:
            self._given.remove(name)
            for one in self._gangs.values():
                one.lose(name)
        for one in self._gangs.values():
            one.count(self._given)

    def _pod(self, event: Event) -> None:
        pod, meta = event.object, event.object["metadata"]
        label = (meta.get("labels") or {}).get(gang.LABEL, "")
        one = self._gangs.get(label)
        if one is None:
            return
        lives = is_alive(pod) and not event.is_gone
        one.members[meta["uid"]] = _Member(meta["name"], tuple(claim_names(pod)), lives)
        having = one.count(self._given)
        if not is_gated(pod) and not one.is_judged:
            one.is_judged = True
            if not one.is_whole:
                self.found.append(self._told(label, one, having, event.revision, pod))

    def _told(self, label: str, one: _Gang, having: int, revision: int, pod: Object) -> str:
        members = one.members.values()
        without = (it.name for it in members if it.is_alive and not it.has_devices(self._given))
        meta = pod["metadata"]
        return (
            f"gang {meta['namespace']}/{label}: at revision {revision} pod {meta['name']} is free, "
            f"and {having} of {one.size} members have devices; living ones without: "
            f"{', '.join(sorted(without)) or 'none'}"
        )


def partial_gangs(events: Iterable[Event], sizes: Mapping[str, int]) -> list[str]:
    """What is wrong.

    events: those of one namespace, in order, from before its first gang came. sizes: of the gangs,
    by the label of their members.
    """
    judge = _Judge(sizes)
    for event in events:
        judge.see(event)
    return judge.found
