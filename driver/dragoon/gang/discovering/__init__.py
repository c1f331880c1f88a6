"""Which gangs there are, who their members are, and what is wrong with what was written.

`families` sorts the pods of one label value in one namespace into Gangs, and says which Gangs to
make; `sizes` reads how many members have to run together; `checking` says what is wrong.

May import dragoon.api, dragoon.errors, dragoon.gang.records. Pure.

Invariants: one pod belongs to at most one Gang; a Gang made from labels is found again by the UID
of its owner, whatever its name; a pod without the gate is never planned; two answers to one
question are refused, never chosen from.
"""
