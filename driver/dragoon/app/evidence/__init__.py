"""Gathers what `dragoon check` looks at: `node` from this node, `cluster` from an API server.

Nothing is changed, on the node or in the cluster; dry runs store nothing. A part that cannot be
gathered is an `Unread` with the reason and costs no other. May import everything below the CLI.
"""
