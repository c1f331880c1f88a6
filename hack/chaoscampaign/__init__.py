"""The fault campaign: a node is broken at every point between two side effects, and put on again.

`victim` is the process under test: the real plugin on a simulated machine, whose effects, card
changes and driver calls pass a `board` first, where the campaign orders what happens there.
`node` is everything around it (folders, API server, kubelet), `workload` the claims and their
containers, `truth` an independent look at what is really there, `deeds` the faults, `campaign`
their order. `memory` does the same to a disk in memory, where a power cut costs a millisecond.

Nothing of this is in the product: a plugin that dies on request exists here alone.
"""
