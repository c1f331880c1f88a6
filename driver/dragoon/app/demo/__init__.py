"""`dragoon demo`: the main job on one machine, without a cluster and without a GPU.

`story` is what is shown and what must be true at every step; it speaks to a `stage.Stage` and
tells a `stage.Teller`. `embedded` is the stage of one machine: the real plugin process, a small
API store, the kubelet stand-in, and the allocator in the scheduler's place. `container` is what
the container runtime would do with the CDI ids.

May import: what dragoon.app may. Invariants: a step that does not come true within its deadline
ends the demo with the reason; every process started is stopped by its id; the folder is removed.
"""
