"""Claims to usable devices: right when anything dies at any moment (DESIGN section 5).

`engine` runs one claim through reading, guard, journal, effects and answer. Decisions (`plan`,
`guard`, `cdi`) are pure; every side effect goes through the one `effects.Effects` port, so that a
new effect is a new fault point by construction.

May import: allocator, gpu, kube, telemetry, api, errors. Invariants: no device is prepared for two
claims; an effect is journaled before it happens; no lock is held while waiting.
"""
