"""GPUs to devices to ResourceSlices, and the reconciler that keeps them there.

Pure, in the order data flow: `floor` and `wishing` (which forms are wanted), `choosing` (which a
card can have), `forms` and `counters` (its devices, and what keeps them apart), `building` and
`devices` (one card, all cards), `withdrawing`, `slices`, `comparing`, `reconciling`; beside them
`attributes`, `domains`, `owners`, `blaming`. They say what should stand in the API server and which
writes lead there.

`own_node` follows the Node; `looking`, `holding` and `surveying` ask the API server, the journal
and the cards; `offering` brings it all together, with what was `last_seen`; `publisher` writes, when
`pacing` says so, what is `keepable`, after `probing` what the server keeps.

May import: dragoon.gpu, dragoon.kube, dragoon.telemetry, dragoon.api and below; never
dragoon.prepare. Invariants: what is written is always valid; nothing is written while the kubelet
does not have this process registered, nor when nothing changed; one bad attribute or card costs
that attribute or card; a device that must not be given away is never published without its taint;
forms of one card are never published without what keeps them apart; a device that somebody may
hold is never removed.
"""
