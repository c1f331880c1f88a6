"""Dragoon: a Kubernetes DRA driver for NVIDIA GPUs with a gang allocator.

The layers and what may import what: ARCHITECTURE.md. This package itself imports nothing, so
that `dragoon --help` stays fast.
"""

__version__ = "0.1.0"
