"""The API server: raw objects in, raw objects out.

`port` says what the rest of Dragoon may ask. `connecting` finds an API server and its credentials,
`client` asks it through `kubernetes.aio`. `memory` is an API server in this process for tests and
the demo (its parts: `store`, `writes`, `traits`, `claimrules`, `patching`, `selecting`, `faults`),
`serving` puts it behind HTTP. `informer` keeps a local copy that follows a watch, `events` tells
users what happened.

May import: dragoon.api, dragoon.errors. Only this package imports `kubernetes`, and of it only the
aio ApiClient, configuration and auth: typed models drop unknown fields. Only `client` and
`connecting` import it at all, so that the others stay cheap to import.

Invariants: objects are plain JSON as the server has them, and callers own what they are given;
every error that leaves the package is a DragoonError; nothing here logs a credential. The package
logs with the standard library: the command line imports it too, and structlog is for daemons.
"""
