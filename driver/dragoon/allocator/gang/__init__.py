"""The gang planner: nodes and devices for all members of a gang together, or the reason why not.

May import what the allocator may, and dragoon.api.gang for topology. Pure: no I/O, no clock.

Invariants: what is planned kube-scheduler's allocator allows, member by member, and the nodes have
room for it (`fit`); `verifying` shares no logic with the search; NoRoom is said only where no
placement exists, SearchStopped where that is not known; the same input gives the same plan but for
share IDs, which are injected.

Parts, in the order data flow: reading (raw to asks), checking, shapes (members that are alike),
alike and terrain (nodes that are alike), offers, preference and seats (devices of one node),
bounds, demand and mix (pods that are to be expected), fragments, valuing and worth (what is lost to
them), filling and packing, narrowing (topology), spreading (devices of several nodes), realising,
scoring, attempt (all of these once), settling (members beyond the minimum), planning. For the
reasons: telling, changing, releasing, advice. For those that wait: vacating (who would have to
leave), concern (what they could use). For the check: rendering, verifying.
"""

from dragoon.allocator.gang.model import (
    ANYWHERE,
    Budget,
    Change,
    GangAsk,
    GangPlan,
    Missing,
    NodeFacts,
    NoRoom,
    Outcome,
    Placement,
    PlacementSnapshot,
    PodAsk,
    Refused,
    Score,
    SearchStopped,
    Slot,
)
from dragoon.allocator.gang.planning import plan
from dragoon.allocator.gang.reading import extended_resources, node_facts, pod_ask

__all__ = [
    "ANYWHERE",
    "Budget",
    "Change",
    "GangAsk",
    "GangPlan",
    "Missing",
    "NoRoom",
    "NodeFacts",
    "Outcome",
    "Placement",
    "PlacementSnapshot",
    "PodAsk",
    "Refused",
    "Score",
    "SearchStopped",
    "Slot",
    "extended_resources",
    "node_facts",
    "plan",
    "pod_ask",
]
