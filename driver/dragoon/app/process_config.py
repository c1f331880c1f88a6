"""The settings that plugin and controller have in common; each adds its own."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from dragoon.api.names import DRIVER_NAME

Listen = Annotated[
    str, Meta(description="Where /metrics, /healthz, /readyz and /debug/state are served.")
]
"""`address:port`; each process has a port of its own."""


class ProcessConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a process is called, reaches the API server, and logs."""

    driver_name: Annotated[
        str,
        Meta(description="The driver's name in slices and claims; every name derives from it."),
    ] = DRIVER_NAME
    kubeconfig: Annotated[
        str,
        Meta(
            description="How to reach the API server; empty means $KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config."
        ),
    ] = ""
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Which lines are logged.")
    ] = "info"
    log_format: Annotated[
        Literal["auto", "json", "text"],
        Meta(description="How they look; auto is text on a terminal, else JSON."),
    ] = "auto"
    pod_name: Annotated[str, Meta(description="This pod's name (downward API).")] = ""
