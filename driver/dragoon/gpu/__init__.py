"""The GPUs of this node behind one port.

`model` is what the rest of Dragoon knows of a GPU, `port` is how it asks. `nvml` answers with the
real driver library through pynvml; `sim` puts a simulated library *under* pynvml, so that the real
adapter runs everywhere. `topology` is pure: link groups out of an inventory.

May import: dragoon.api, dragoon.errors. Invariant: one broken card never costs the others.
"""
