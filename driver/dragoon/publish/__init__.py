"""GPUs to devices to ResourceSlices, and the reconciler that keeps them published (DESIGN section 4).

Pure: `attributes`, `devices`, `domains`, `owners`, `slices`, `comparing`, `reconciling`. They say
what should stand in the API server and which writes lead there. `offering` brings hardware and
other owners of the cards together; `publisher` writes, when `pacing` says so, after `probing` what
the server keeps.

May import: dragoon.gpu, dragoon.kube, dragoon.telemetry, dragoon.api and below; never
dragoon.prepare. Invariants: what is written is always valid; nothing is written while the kubelet
does not have this process registered, nor when nothing changed; one bad attribute or card costs
that attribute or card; a device that must not be given away is never published without its taint.
"""
