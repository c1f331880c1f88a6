"""Questions about a cluster, a node or files: explain, simulate, lint, check, status, map.

`documents` and `manifests` read files, `workloads` finds the pods in them. `snapshot` is what a
cluster looked like, from the live API (`gathering`), a saved folder (`saving`) or a dump
(`archive`; `redacting` leaves secrets out of both, `layout` what no API server stores out of what
is read), `installed` what is ours in it. `linting`
checks manifests, `checking` what was gathered of nodes and clusters, `codes` is what their tables
have in common and `reference` their page; `standing` is one screen of a cluster, `mapping` a page
of it, `wishing` a claim from a few words; `placing` says what would be allocated, `gangs` what the
gang planner says, `remedies` the smallest change that would make it fit, `waiting` the code of the
reason, `explaining` puts the answers together.

May import: dragoon.publish and dragoon.prepare (their records and tables), allocator, gpu.model,
kube.port, api, cel, quantity, semver, errors.

Invariants: nothing is ever written to a cluster; a part that cannot be read is named and the rest
is answered; a change is offered only after it was allocated on a copy of the snapshot and accepted
by the allocator's verifier; the same input gives the same answer.
"""
