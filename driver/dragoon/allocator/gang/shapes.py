"""Members that are alike are planned once for all of them.

A block is what has to be on one node: a member, or members that share a claim. A shape is all
blocks that are alike in everything that decides where they fit: requests, claims, rules.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoon.allocator.claims import claim_view
from dragoon.allocator.gang.model import Amounts, PodAsk
from dragoon.allocator.model import Claim, Raw, Request, Toleration, Wanted


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Members that have to be on one node, and their pending claims, each once, in order."""

    members: tuple[PodAsk, ...]
    claims: tuple[Claim, ...]

    @property
    def pods(self) -> int:
        """Pods that the facts of a node do not count yet."""
        return sum(not one.node for one in self.members)

    @property
    def requests(self) -> Amounts:
        """What they take of a node that does not count them yet."""
        total: dict[str, int] = {}
        for member in self.members:
            if not member.node:
                for name, amount in member.requests.items():
                    total[name] = total.get(name, 0) + amount
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Blocks that are alike, in their order; the first stands for all. number: its place.

    terms: equal for shapes that the same nodes take, devices and room apart.
    """

    number: int
    blocks: tuple[Block, ...]
    requests: Amounts
    pods: int
    devices: int
    terms: Any

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of the first block."""
        return self.blocks[0].claims

    @property
    def members(self) -> tuple[PodAsk, ...]:
        """The members of the first block."""
        return self.blocks[0].members


def is_pending(claim: Raw) -> bool:
    """Whether a claim has no devices yet."""
    return not (claim.get("status") or {}).get("allocation")


def uid_of(claim: Raw) -> str:
    """The UID of a claim."""
    return str(claim["metadata"].get("uid") or "")


def blocks_of(
    members: Sequence[PodAsk], tolerations: tuple[Toleration, ...], *, apart: bool = False
) -> list[Block]:
    """The blocks of members, in the order of their first members.

    apart: members that share a claim need not be on one node; the claim is then planned with the
    first of them. Raises InvalidInputError and UnsupportedError as claim_view does.
    """
    reader = _ClaimReader(tolerations)
    groups = [[one] for one in members] if apart else _together(members)
    seen: set[str] = set()
    blocks: list[Block] = []
    for group in groups:
        claims: dict[str, Claim] = {}
        for raw in (raw for one in group for raw in one.claims):
            uid = uid_of(raw)
            if is_pending(raw) and uid not in seen:
                claims.setdefault(uid, reader.view(raw))
        seen |= claims.keys()
        blocks.append(Block(tuple(group), tuple(claims.values())))
    return blocks


def shapes_of(blocks: Iterable[Block]) -> list[Shape]:
    """The shapes of blocks: those that want most devices first, then those that ask for most cpu.

    The order decides only what is tried first.
    """
    alike: dict[Any, list[Block]] = {}
    for block in blocks:
        alike.setdefault(_key(block), []).append(block)
    found = [
        Shape(0, tuple(same), same[0].requests, same[0].pods, _devices(same[0]), _terms(same[0]))
        for same in alike.values()
    ]
    found.sort(key=lambda one: (-one.devices, -one.requests.get("cpu", 0)))
    return [replace(one, number=number) for number, one in enumerate(found)]


class _ClaimReader:
    """Reads claims; those with equal specs share their parts."""

    def __init__(self, tolerations: tuple[Toleration, ...]) -> None:
        self._tolerations = tolerations
        self._known: dict[str, Claim] = {}

    def view(self, raw: Raw) -> Claim:
        key = repr(raw.get("spec"))
        known = self._known.get(key)
        if known is None:
            view = claim_view(raw)
            known = replace(view, requests=tuple(map(self._tolerating, view.requests)))
            self._known[key] = known
        metadata = raw["metadata"]
        return replace(
            known,
            namespace=metadata.get("namespace") or "",
            name=metadata.get("name") or "",
            uid=uid_of(raw),
        )

    def _tolerating(self, wanted: Wanted) -> Wanted:
        return replace(
            wanted,
            alternatives=tuple(
                replace(one, tolerations=one.tolerations + self._tolerations)
                for one in wanted.alternatives
            ),
        )


def _together(members: Sequence[PodAsk]) -> list[list[PodAsk]]:
    """Members that share pending claims, directly or through others, in order of their first."""
    root = list(range(len(members)))

    def find(index: int) -> int:
        while root[index] != index:
            index = root[index]
        return index

    first_with: dict[str, int] = {}
    for index, member in enumerate(members):
        for uid in (uid_of(raw) for raw in member.claims if is_pending(raw)):
            one, other = find(first_with.setdefault(uid, index)), find(index)
            root[max(one, other)] = min(one, other)
    groups: dict[int, list[PodAsk]] = {}
    for index, member in enumerate(members):
        groups.setdefault(find(index), []).append(member)
    return list(groups.values())


def _key(block: Block) -> Any:
    wishes = tuple(
        (claim.requests, claim.constraints, tuple(_copied(claim))) for claim in block.claims
    )
    return wishes, tuple(sorted(block.requests.items())), block.pods, _terms(block)


def _copied(claim: Claim) -> Iterator[str]:
    """What a result copies of the requests: equal tolerations may be written in different words."""
    for request in _alternatives(claim):
        if request.raw_tolerations:
            yield repr(request.raw_tolerations)


def _alternatives(claim: Claim) -> Iterator[Request]:
    for wanted in claim.requests:
        yield from wanted.alternatives


def _terms(block: Block) -> Any:
    """What decides which nodes take it, however empty they are."""
    return tuple(dict.fromkeys(map(_terms_of, block.members)))


def _terms_of(pod: PodAsk) -> Any:
    return (
        pod.node,
        tuple(sorted(pod.node_selector.items())),
        repr(pod.affinity),
        pod.tolerations,
        repr(allocated_selectors(pod)),
    )


def allocated_selectors(pod: PodAsk) -> list[Raw]:
    """Where the claims of a pod that are allocated already can be used."""
    return [
        selector
        for raw in pod.claims
        if (selector := ((raw.get("status") or {}).get("allocation") or {}).get("nodeSelector"))
    ]


def _devices(block: Block) -> int:
    """How many devices it wants at least; one stands for all devices of a node."""
    return sum(
        min(1000 if one.everything else one.count for one in wanted.alternatives)
        for claim in block.claims
        for wanted in claim.requests
    )
