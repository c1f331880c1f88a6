"""A simulated libnvidia-ml and the machine behind it.

`machine` says what a machine is, `profiles` reads one from a topology file (`case-topology/1`),
`state` and `hardware` keep it in one JSON file that several processes share, `tree` and
`kernel_files` lay out its sysfs and procfs, `library` answers NVML's C symbols from it.
`occupants` are what may live on a card; `partitioning` (MIG) and `accounting` (memory per cgroup)
say how that changes, and what is refused. pynvml is not imported here: the library goes *under*
pynvml, and `gpu.nvml` puts it there.

May import: dragoon.errors, dragoon.gpu.{model,mig,pci}, msgspec, yaml. Invariants: the state
file is replaced whole, under a lock; whoever reads it sees one consistent machine; answers to
questions that a topology file leaves open are "not supported", never made up.
"""
