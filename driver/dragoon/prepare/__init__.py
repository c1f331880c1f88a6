"""Claims to usable devices: right when anything dies at any moment.

`engine` runs one claim through reading, guard, journal, effects and answer. Decisions (`given`,
`containers`, `plan`, `guard`, `deciding`, `cdi`, `consumers`) are pure; `executing` applies them;
`tidying`, `reconciling`, `rebuilding` (with `recalling`) and `sweeping` keep node, journal and API
server in agreement. `enforcement` makes shares of a GPU real, `audit` looks whether they are, and
`status` and `blocking` tell users what became of their claims. What is done to a node is a list of
steps (`step`, `steps`): data in the journal.
Every side effect goes through the one `effects.Effects` port, so that a new effect is a new fault
point by construction.

May import: gpu, kube, api, errors. Invariants:

- no device is prepared for two claims, and no card for more than it has, whatever the API says;
- an effect is journaled before it happens, and undone before its journal entry goes; what claims
  make together goes with the last of them;
- locks are held only around effects, never while waiting for another claim;
- what was answered once for a claim is answered again, byte for byte, until it is unprepared;
- every effect of an earlier boot counts as gone.
"""
