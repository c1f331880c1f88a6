"""The gang protocol: fence, wait, look again, commit, verify, pin, ungate, hold, undo, release.

`model` has the view, `actions` what can be done, `deciding` the pure function from one to the
other; its parts are `rounds`, `fencing`, `committing`, `holding`, `returning`, `stuck` and
`undoing`, with `facts` for what a view says and `damage` for what was given twice. `sweeping` is
for what outlives a gang, `viewing` makes facts of raw objects, `objects` the bodies of what is
written, `executing` writes.

May import dragoon.allocator, dragoon.api, dragoon.errors, dragoon.gang.records, dragoon.kube. All
but `executing` is pure. Facts were measured on a live control plane.

Invariants: a step is journaled before its first effect; every decision can be made again from the
API alone; nothing is allocated but under a rule on its pool; a clear names the resourceVersion that
was decided on; once a member is ungated, no allocation of a living pod is cleared; pods without an
owner are never deleted.
"""
