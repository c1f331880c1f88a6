"""CEL as kube-scheduler evaluates device selectors, with a trace of why an expression was false."""
