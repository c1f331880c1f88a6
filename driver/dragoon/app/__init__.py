"""Wiring of the processes: which parts run together, with which settings.

`process_config`, `config` and `controller_config` are the settings, `loading` reads them. `hardware`
opens the GPUs they mean; `plugin` is the node process (`starting`) and `controller` the other one
(`gate`), which `plugin_process` and `controller_process` run until `stopping`, with `supervision` of
their parts and `reporting` to logs and metrics; `permissions` says what they may
do in the API server, `demo` plays the whole story on one machine without a cluster. `evidence` and
`dumping` gather for the command line, the `*_view` modules show what a node or a cluster has.

May import: everything but dragoon.cli. Invariants: a part that fails is started again alone and
never takes the process with it; on a stop slices and prepared claims stay.
"""
