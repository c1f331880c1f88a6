"""Gangs that wait: in what order, for whom, and what is kept for the one that waits for most.

`ranking` is the order, `freed` what wakes whom. `occupants` is who holds what others wait for, and
`durations` until when; `making_room` says who of lower priority would be enough. `reserving`
decides for whom devices are kept, `keeping` reads what is kept, `backfilling` says who may use it
meanwhile.

May import dragoon.allocator, dragoon.api, dragoon.errors, dragoon.gang.records,
dragoon.gang.protocol; `keeping` dragoon.gang.world. Pure but for what `keeping` remembers.

Invariants: nobody is evicted; for one gang at a time (a setting) devices are kept, and they are
journaled in its status before a rule fences them; what is kept never delays the gang that replaces
a member; without a duration there is no estimate, and nothing is backfilled.
"""
