"""The map as plain data: what `-o json` prints, and what the page shows.

Fields that say nothing are left out, and what the cards of a node have in common stands once: a map
of 8,000 GPUs stays below 2 MB.
"""

from typing import Any

from dragoon.diagnose.codes import API_VERSION
from dragoon.diagnose.mapping.model import Card, ClusterMap, GangLine, Holder, Node

Data = dict[str, Any]


def as_data(found: ClusterMap) -> Data:
    """Plain data with version and kind.

    `holds[].claim` is a position in `claims`; `model` and `domain` of a card are positions in those
    of its node.
    """
    positions = {holder.name: position for position, holder in enumerate(found.claims)}
    return {
        "apiVersion": API_VERSION,
        "kind": "Map",
        "source": found.source,
        "driver": found.driver,
        "counts": {state.value: count for state, count in found.counts.items()},
        "nodes": [_node(node, positions) for node in found.nodes],
        "claims": [_holder(holder) for holder in found.claims],
        "gangs": [_gang(gang) for gang in found.gangs],
        "waiting": list(found.waiting),
        "notes": list(found.notes),
    }


def _node(node: Node, positions: dict[str, int]) -> Data:
    models = list(dict.fromkeys((card.product, card.memory) for card in node.cards))
    domains = list(dict.fromkeys(card.domain for card in node.cards if card.domain))
    return _said(
        {
            "name": node.name,
            "places": dict(node.places),
            "fences": list(node.fences),
            "models": [{"product": product, "memory": memory} for product, memory in models],
            "domains": domains,
            "cards": [
                _card(
                    card,
                    models.index((card.product, card.memory)),
                    domains.index(card.domain) if card.domain else None,
                    positions,
                )
                for card in node.cards
            ],
        }
    )


def _card(card: Card, model: int, domain: int | None, positions: dict[str, int]) -> Data:
    data: Data = {
        "address": card.address,
        "state": card.state.value,
        "fill": card.fill,
        "model": model,
        "forms": list(card.forms),
        "holds": [
            {"claim": positions[hold.claim], "device": hold.device, "memory": hold.memory}
            for hold in card.holds
        ],
        "taints": list(card.taints),
    }
    return _said(data) | ({} if domain is None else {"domain": domain})


def _holder(holder: Holder) -> Data:
    return _said({"name": holder.name, "pods": list(holder.pods), "gang": holder.gang})


def _gang(gang: GangLine) -> Data:
    return {
        "name": gang.name,
        "phase": gang.phase,
        "ready": gang.ready,
        "size": gang.size,
        "message": gang.message,
        "lines": list(gang.lines),
        "change": gang.change,
    }


def _said(data: Data) -> Data:
    return {name: value for name, value in data.items() if value not in ("", [], {}, 0)}
