"""The API server: raw objects in, raw objects out.

`port` says what the rest of Dragoon may ask. `connecting` finds an API server and its credentials
(`access`; `kubeconfig` reads such files, `exec_plugin` runs what they name), `contexts` the namespace
that a command means, `client` asks it through `transport` and reads `answers` (`mending`). `memory` is
an API server in this process for tests and the demo (its parts: `store`, `writing`, `writes`,
`traits`, `claimrules`, `patching`, `selecting`, `faults`), `serving` puts it behind HTTP
(`http_requests`, `streaming`). `informer` keeps a local copy (`mirror`) that follows a watch, `events`
tells users what happened, `budget` bounds writes of what may change for ever, `rights` asks who may
do what.

May import: dragoon.api, dragoon.errors. Only this package imports `kubernetes`, and of it only the
aio configuration and auth: typed models drop unknown fields. Only `kubeconfig` imports it at all,
and is imported where there is such a file: a pod of the plugin never pays for it.

Invariants: objects are plain JSON as the server has them, and callers own what they are given;
every error that leaves the package is a DragoonError; nothing here logs a credential. The package
logs with the standard library: the command line imports it too, and structlog is for daemons.
"""
