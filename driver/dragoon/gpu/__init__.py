"""The GPUs of this node behind one port.

`model` is what the rest of Dragoon knows of a GPU, `mig` and `limits` what it knows of a divided or
shared one, `condition` how well it is, `port` is how it asks and changes, `faults` what it may be
refused for. `opening` makes the one that answers: `nvml`, the driver library through pynvml, with
`pci` and `capabilities` for what only the kernel tells. `mig_memory`, `limits_memory` and
`condition_memory` are fakes of the ports. `sim` puts a simulated library *under* pynvml, so that
the real adapter runs everywhere. `topology` is pure: link groups out of an inventory; so are
`naming` and `mig_names`. `watching` keeps the newest inventory for an event loop.

May import: dragoon.api, dragoon.errors. Invariants: one broken card never costs the
others; a look at whole GPUs asks nothing about instances; an instance is removed only when its UUID
is the one that was meant.
"""
