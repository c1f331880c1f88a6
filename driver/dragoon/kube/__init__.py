"""The API server: raw objects in, raw objects out.

`port` says what the rest of Dragoon may ask, `client` asks a real API server through
`kubernetes.aio`, `memory` is a small API store for tests and the demo, `serving` puts it behind
HTTP. `informer` keeps a local copy that follows a watch.

May import: dragoon.api, dragoon.errors. Only this package imports `kubernetes`, and of it only the
aio ApiClient, configuration and auth: typed models drop unknown fields.
"""
