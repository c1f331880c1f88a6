"""Telling users what became of their claim: `claim.status.devices[]`, and events on its pod.

`outcome` is what is told, `describing` turns it into entries of the status (pure), `writing` puts
them into the API server. `pressure` decides when a share's use is worth telling (pure), `watching`
looks at it.

May import what prepare may. Invariants:

- the answer to the kubelet never waits for any of this, and never fails because of it;
- a write happens only where something changed, and only to the claim that was meant (its UID);
- entries of other drivers are written back as they were read, or the write is refused (409);
- there is one event for a refusal, however often the kubelet asks again: the status remembers.
"""
