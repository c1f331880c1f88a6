"""Dragoon on the real cluster of hack/cluster: for e2e tests, benchmarks and `hack/demo --real`.

May import dragoon and realcluster. The plugin runs as a process of this machine with the rights of
its ServiceAccount; its GPUs are simulated, everything else is real.
"""
