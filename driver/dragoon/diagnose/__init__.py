"""Questions about a cluster or about files: explain, simulate, lint.

`documents` and `manifests` read files, `workloads` finds the pods in them. `snapshot` is what a
cluster looked like, from the live API (`gathering`) or from a saved folder (`saving`). `linting`
checks manifests; `placing` says what would be allocated, `gangs` what the gang planner says,
`remedies` the smallest change that would make it fit, `explaining` puts the answers together.

May import: dragoon.publish (its table of attributes), allocator, kube.port, api, cel, quantity,
semver, errors.

Invariants: nothing is ever written to a cluster; a part that cannot be read is named and the rest
is answered; a change is offered only after it was allocated on a copy of the snapshot and accepted
by the allocator's verifier; the same input gives the same answer.
"""
