"""Asks an autoscaler for nodes on which a gang that waits would fit: a ProvisioningRequest.

`objects` has what is written, `deciding` when and what is said of it, `asking_for_nodes` does it.
May import dragoon.allocator.gang, dragoon.api, dragoon.errors, dragoon.gang.records,
dragoon.gang.waiting, dragoon.gang.line, dragoon.gang.world, dragoon.kube. Source: k8s.io/autoscaler
cluster-autoscaler/apis, autoscaling.x-k8s.io/v1. Gated pods never wake an autoscaler by themselves.

Invariants: only where a class is set; a request says what its name says, so a second try meets the
first; its spec never changes: another need is another request; all of it goes with its Gang.
"""
