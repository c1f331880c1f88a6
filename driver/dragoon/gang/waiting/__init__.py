"""Gangs that wait: in what order, for whom, and what is kept for the one that waits for most.

`ranking` is the order, `occupants` who holds what others wait for, `durations` until when.

May import dragoon.allocator, dragoon.api, dragoon.errors, dragoon.gang.records, dragoon.gang.world,
dragoon.gang.protocol, dragoon.kube. Facts and rules: reference/gang.md 3, docs/gangs.md.
"""
