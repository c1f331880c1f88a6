"""Making shares of a GPU real: one file for each tier, behind one interface (`tier`).

A tier says at start whether this node can do it (`probe`) and plans what a share needs (`plan`).
What it plans are steps, as data in the journal: each is applied, verified and undone by itself.
They stand below the interface (`hami_steps`, `memory_cap`, `time_slice`) and know no tier.
Nothing falls back: a tier that cannot be applied refuses the claim with the reason, before anything
is changed.

May import what prepare may. HAMi-core's library is the administrator's: nothing of it is here.
"""
