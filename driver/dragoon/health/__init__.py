"""What cards raise and say of themselves, made into verdicts.

Pure, in the order data flow: `xids` (what an XID means), `scope` (which devices of a divided card
an event touches), `judging` (events and observations to the verdicts of each card), `remembering`
(what must outlive the process), `reports` (verdicts to the health of devices, as the kubelet is
told). `watching` drives them: it listens, asks (`scoping`), remembers (`keeping`), and tells whoever
has subscribed. A verdict is a `verdict.Verdict`; what becomes of it is a setting (`settings`): a taint
or only a remark. Who publishes taints and who speaks to the kubelet is not known here.

May import: dragoon.gpu, dragoon.api, dragoon.errors, structlog. Invariants: a fatal event is
remembered before anybody is told, and stays until the card was reset, replaced, or the node booted;
what is not known for one card is not known for that card only; a verdict that touches one instance
spares only devices that share no memory slice with it; nothing here blocks the event loop.
"""
