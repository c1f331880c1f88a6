"""Which devices a claim gets: what kube-scheduler's structured allocator allows, in pure Python."""
