"""What stands in the API server, what is offered and why, as /debug/state shows it."""

from typing import Any

from dragoon.publish.offering import Offering
from dragoon.publish.publisher import PublishState


def shown(published: PublishState, offering: Offering) -> dict[str, Any]:
    """The part of the state that publishing knows, as JSON."""
    return {
        "slices": {
            "generation": published.generation,
            "current": published.current,
            "devices": published.devices,
            "leftOut": list(published.left_out),
            "error": str(published.error) if published.error else None,
        },
        "forms": list(offering.wanted.wishes.forms),
        "formsFrom": offering.wanted.source,
        "leaving": list(offering.leaving),
        "problems": list(offering.problems),
        "otherOwners": [owner.name for owner in offering.owners],
    }
