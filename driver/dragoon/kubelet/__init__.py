"""The kubelet's side of the node: registration and the DRA service over Unix sockets.

`serving.KubeletPlugin` is what the plugin process starts and stops; it puts together `draplugin`
(prepare and unprepare, v1 and v1beta1), `healthstream` (v1 and v1alpha1), `registration` and
`socketserver`, on paths from `sockets`. `standin.KubeletStandIn` plays the kubelet for the demo and
the tests. `wire` holds the generated messages, `rpc` and `messages` hide them from the rest.

May import: grpc and everything below (dragoon.prepare, publish, health, kube, gpu, telemetry, api,
errors).

Invariants: a socket is seen at its path only while a server answers behind it; no file is removed
that is not ours; `registered` means that the kubelet has told this very process so; one claim's
failure is that claim's error and nobody else's.
"""

import os

# gRPC reads it once, when it is imported. What it tells by itself below errors, such as that a
# server went away under a connection, would stand between the lines of a command or of a log.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
