"""The controller: discovers gangs, places their claims all together, watches over all claims.

`protocol` decides step by step what is written for one gang, `arbiter` finds what was given twice,
`nudging` wakes kubelets that wait after a failed prepare, `stranded` tells of pods that were bound
past kube-scheduler. `waiting` is about gangs that wait: their order, what is kept for them and who
could make room; `provisioning` asks an autoscaler for nodes.

May import dragoon.allocator, dragoon.api, dragoon.errors, dragoon.kube, dragoon.telemetry.
"""
