"""A real Kubernetes on one machine: etcd, control plane, kubelets and containerd, no Docker.

Standard library only, because it must run with a plain `python3` before anything is installed.
"""
