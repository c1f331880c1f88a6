"""How a gang stands: its status, but for the plan, from what was seen and decided.

`sight` is what was seen, `conditions` and `telling` say it. May import dragoon.allocator.gang,
dragoon.api, dragoon.gang.discovering, dragoon.gang.protocol.model. Pure.

Invariants: the same sight gives the same status, so nothing is written while nothing changes; a
condition keeps its time while its status is the same; no text is longer than the CRD allows.
"""
