"""Logs, metrics and the health endpoint of the two processes.

`logs` configures structlog once, `metrics` is the table of everything that is counted, `endpoint`
serves both health and metrics over HTTP.

May import: dragoon.api, dragoon.errors. Invariants: no secret reaches a log line; no metric has a
label whose values users choose (pods, claims), so that the number of series stays bounded.
"""
