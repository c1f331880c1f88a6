"""The form in which several claims get parts of a GPU's memory and compute.

The counters are charged once, by the first share; after that only capacity counts. A capacity that
the node does not enforce is not published: a claim that asks for it finds no device, instead of a
device that must refuse it.
"""

from dataclasses import replace
from typing import Any, Final

from dragoon.api.enforcement import Compute, Memory, NodeEnforcement
from dragoon.api.forms import MIB, SMALLEST_SHARE, Form
from dragoon.gpu.naming import shared_name
from dragoon.publish import attributes
from dragoon.publish.card import Card, Made
from dragoon.publish.device import Device
from dragoon.quantity import Format, Quantity

_STEP: Final = MIB

_CORES: Final = {
    "value": "100",
    "requestPolicy": {"default": "0", "validRange": {"min": "0", "max": "100", "step": "1"}},
}
"""Per cent of the GPU's compute. The default, 0, means no ceiling."""


def shared(card: Card) -> Made:
    """The device; `shares` says for which cards there can be one."""
    facts = replace(card.facts, form=Form.SHARED)
    said, left_out = attributes.describe(facts)
    device = Device(
        shared_name(facts.gpu.address),
        said,
        _capacity(facts.gpu.memory_bytes, facts.enforcement or NodeEnforcement()),
        card.taints,
        consumes=card.ledger.total if card.ledger else None,
        shared=True,
    )
    return (device,), left_out


def obstacle(memory_bytes: int | None, enforcement: NodeEnforcement) -> str:
    """Why a GPU cannot be shared on this node; empty where it can.

    Without a known size nothing can be held to its part: then only unenforced shares are possible.
    """
    strength = enforcement.strength
    if strength is None:
        reasons = "; ".join(f"{tier}: {why}" for tier, why in enforcement.unavailable.items())
        return f"no enforcement tier works on this node{f' ({reasons})' if reasons else ''}"
    if not memory_bytes:
        enforced = strength.memory is not Memory.NONE
        return "its size is not known, so no share could be enforced" if enforced else ""
    if memory_bytes < SMALLEST_SHARE + _STEP:
        return f"its {memory_bytes} bytes are no more than the smallest share"
    return ""


def _capacity(memory_bytes: int | None, enforcement: NodeEnforcement) -> dict[str, Any]:
    strength = enforcement.strength
    found = {}
    if memory_bytes:
        found[attributes.MEMORY] = _memory(memory_bytes)
    if strength and (strength.compute is not Compute.NONE or strength.memory is Memory.NONE):
        found[attributes.CORES] = _CORES
    return found


def _memory(size: int) -> dict[str, Any]:
    """Whole steps only: the default must be one of the amounts that can be asked for."""
    usable = _bytes(size - size % _STEP)
    range_ = {"min": _bytes(SMALLEST_SHARE), "step": _bytes(_STEP)}
    return {"value": usable, "requestPolicy": {"default": usable, "validRange": range_}}


def _bytes(size: int) -> str:
    return str(Quantity(size, format=Format.BINARY))
