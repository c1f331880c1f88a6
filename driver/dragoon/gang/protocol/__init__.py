"""The gang protocol: fence, wait, look again, commit, verify, pin, ungate, hold, undo, release.

`model` has the view and the actions, `deciding` the pure function from one to the other (its parts:
`rounds`, `fencing`, `committing`, `holding`, `undoing`, `sweeping`), `viewing` makes a view from
raw objects, `objects` the bodies of what is written, `executing` writes.

May import dragoon.allocator, dragoon.api, dragoon.errors, dragoon.kube. Everything but `executing`
is pure. Facts: reference/gang-tried.md, measured on a live control plane.

Invariants: a step is journaled before its first effect; every decision can be made again from the
API alone; nothing is allocated but under a rule on its pool; a clear names the resourceVersion that
was decided on; once a member is ungated, no allocation of a living pod is cleared; pods without an
owner are never deleted.
"""
