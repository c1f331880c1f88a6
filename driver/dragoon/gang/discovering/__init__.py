"""Which gangs there are, who their members are, and what is wrong with what was written.

`table` lists how other projects say that pods belong together: one declarative entry each, with
`marks` (where a pod says it) and one reader of its numbers (`group_objects`, for those that stand
in an object of that project). `answers` has the types, `grouping` asks the table about a pod.
`families` sorts the pods of one label value in one namespace into Gangs, and says which Gangs to
make; `sizes` reads how many members have to run together; `checking` says what is wrong.

May import dragoon.api, dragoon.errors, dragoon.gang.records, and of dragoon.kube the names of
resources. Pure.

Invariants: a pod without our label is not looked at; one pod belongs to at most one Gang; a Gang
made from labels is found again by its group, else by the UID of its owner, whatever its name; a pod
without the gate is never planned, unless somebody else has bound it without devices; two answers to
one question are refused, never chosen from.
"""
