"""The driver library behind the port: the only place that imports pynvml.

May import: dragoon.errors, dragoon.gpu.model, dragoon.gpu.pci, pynvml. Invariants: every question
to a card is guarded on its own; what asks all cards waits for none that hangs, and asks it no second
time meanwhile; handles live no longer than one call of a port; pynvml is used only while
`library.Library` is held, because pynvml keeps one library for the whole process; NVML's errors leave
as those of `gpu.faults` and `dragoon.errors`.
"""

from dragoon.gpu.nvml.adapter import NvmlGpus

__all__ = ["NvmlGpus"]
