"""The smallest change that would make a claim fit: tried on a copy before it is offered.

`candidates` and `selectors` think of changes to claims, `holders` of claims that could go;
`trying` allocates each on a copy of the snapshot and asks the allocator's verifier.

Invariants: nothing is offered that was not allocated and verified; the number of trials is bounded;
the same input gives the same answer in the same order.
"""

from dragoon.diagnose.remedies.change import Change
from dragoon.diagnose.remedies.trying import Remedies, Remedy, remedies

__all__ = ["Change", "Remedies", "Remedy", "remedies"]
