"""The GPUs of this node behind one port.

`model` is what the rest of Dragoon knows of a GPU, `port` is how it asks, `opening` makes the one
that answers: `nvml`, the driver library through pynvml, with `pci` for what only the kernel tells.
`sim` puts a simulated library *under* pynvml, so that the real adapter runs everywhere. `topology`
is pure: link groups out of an inventory. `watching` keeps the newest inventory for an event loop.

May import: dragoon.api, dragoon.errors. Invariant: one broken card never costs the others.
"""
