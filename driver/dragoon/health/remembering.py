"""Verdicts that last, as bytes. Pure.

An event such as an XID is told once: neither the card nor the driver repeats it to the next
process, so nothing could derive the verdict anew. The slices in the API server would say it too,
but the kubelet deletes them at its start, and they do not say of which boot they are. So it is a
small file on the node. It ends with the boot: every reset that a reboot brings is in there.

A file of a later version is read as far as this one understands it.
"""

from dataclasses import replace

import msgspec

from dragoon.api.decoding import UNDECODABLE
from dragoon.errors import InvalidInputError, StateError
from dragoon.gpu.model import PciAddress
from dragoon.health.settings import HealthSettings
from dragoon.health.verdict import CardHealth, Health, Kind, Verdict

VERSION = 1


class _Verdict(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    value: str
    message: str
    since: float
    ailing: bool = False
    spared: tuple[str, ...] = ()


class _Card(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    uuid: str | None
    verdicts: tuple[_Verdict, ...]


class _File(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    boot_id: str
    cards: dict[str, _Card]


def encode(health: Health, boot_id: str) -> bytes:
    """What must be remembered of it; the same bytes for the same verdicts."""
    cards = {
        str(address): _Card(card.uuid, tuple(map(_kept, card.lasting)))
        for address, card in sorted(health.items())
        if card.lasting
    }
    return msgspec.json.encode(_File(VERSION, boot_id, cards)) + b"\n"


def decode(data: bytes, boot_id: str, settings: HealthSettings) -> Health:
    """What was remembered in this boot; nothing of an earlier one.

    Kinds that this version does not know are left out. Raises StateError for what is no such file.
    """
    try:
        file = msgspec.json.decode(data, type=_File)
        if file.boot_id != boot_id:
            return {}
        return {
            PciAddress.parse(text): CardHealth(
                card.uuid,
                tuple(_verdict(one, settings) for one in card.verdicts if one.kind in set(Kind)),
            )
            for text, card in file.cards.items()
        }
    except (*UNDECODABLE, InvalidInputError) as error:
        raise StateError(
            f"the file of GPUs that had fatal errors cannot be read: {error}",
            hint="errors from before this start are not known any more; look at the kernel log",
        ) from error


def merged(remembered: Health, now: Health) -> dict[PciAddress, CardHealth]:
    """What was judged before it could be read, with what was remembered."""
    found = dict(remembered)
    for address, card in now.items():
        old = remembered.get(address)
        if old is None or (old.uuid and card.uuid and old.uuid != card.uuid):
            found[address] = card
            continue
        known = {verdict.identity for verdict in card.verdicts}
        more = tuple(one for one in old.verdicts if one.identity not in known)
        found[address] = replace(card, uuid=card.uuid or old.uuid, verdicts=card.verdicts + more)
    return found


def _kept(verdict: Verdict) -> _Verdict:
    return _Verdict(
        verdict.kind,
        verdict.value,
        verdict.message,
        verdict.since,
        verdict.ailing,
        tuple(sorted(verdict.spared)),
    )


def _verdict(kept: _Verdict, settings: HealthSettings) -> Verdict:
    kind = Kind(kept.kind)
    return Verdict(
        kind,
        kept.value,
        kept.message,
        kept.since,
        settings.effects[kind],
        lasting=True,
        ailing=kept.ailing,
        spared=frozenset(kept.spared),
    )
