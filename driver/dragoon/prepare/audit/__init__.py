"""Finding processes on this node's GPUs that no claim allows, or that nothing keeps to its limit.

The driver names the processes of each card; the kernel says in which cgroup each is, and with that
in which pod; the journal says which claim has which part of which card (`whereabouts`, `looking`,
`pods`). `judging` decides, and is pure; `auditing` looks every few seconds and reports what stands.

May import what prepare may. Invariants:

- the audit changes nothing: it looks, and reports;
- a finding is reported only after two looks in a row, for a process may be about to end;
- what cannot be known (a pod that the API server does not show, a claim whose entry is unreadable)
  is no finding.
"""
