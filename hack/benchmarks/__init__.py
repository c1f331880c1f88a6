"""Benchmarks against the real cluster of hack/cluster; each compares in one run and prints a ratio.

May import dragoon, realcluster and testbed. Figures go to stdout, progress to stderr.
"""
