"""The kubelet's side of the node: gRPC servers on Unix sockets, registration, sockets and stand-in."""
