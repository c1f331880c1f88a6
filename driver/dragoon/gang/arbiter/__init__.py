"""What was given twice, by whomever: seen on every change of a claim, resolved at once.

`ranking` says who keeps a device, `deciding` what is done, `watching` does it, whether or not there
are gangs.

May import dragoon.gang.protocol and what that may. Everything but `watching` is pure.

Invariants: first a rule on the pool, then the losers; the rule stays while any holder lives (the
sweep of `gang.protocol.sweeping` removes it); pods without an owner are marked, never deleted.
"""
