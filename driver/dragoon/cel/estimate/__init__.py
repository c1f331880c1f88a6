"""The worst cost of a selector on any device, by which the API server refuses new selectors.

May import the tree, the types and the check of dragoon.cel. Pure.

Source: cel-go 0.29 `checker/cost.go`, `ext/lists.go`, `ext/sets.go`; k8s.io/apiserver 0.37
`cel/library/cost.go`; sizes of devices: k8s.io/dynamic-resource-allocation 0.37 `cel/compile.go`.
"""

from dragoon.cel.estimate.walk import estimated_cost

__all__ = ["estimated_cost"]
