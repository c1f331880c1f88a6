"""`dragoon usage`: what the claims of this node use of what they have."""

import asyncio
from typing import Any, Final

import click

from dragoon.app import hardware, usage_view
from dragoon.app.patience import with_or_without
from dragoon.app.usage_view import Line
from dragoon.cli import exits, objects, settings
from dragoon.cli.durations import timeout_option
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    list_form_option,
    print_data,
    print_names,
    print_next,
    print_note,
    print_table,
)

_GIB: Final = 1 << 30
_NEARLY_FULL: Final = 90
_HEADER: Final = (
    *("CLAIM", "POD UID", "CONTAINER", "GPU", "KIND"),
    *("USED", "LIMIT", "%", "CORES", "PROCESSES"),
)
_WIDE: Final = (*_HEADER, "CLAIM UID", "WHY")


@click.command()
@click.argument("claim", required=False, metavar="[claim/NAME]")
@objects.local_namespace_option
@settings.setting_options(
    *hardware.SETTINGS, "driver_name", "kubelet_root", "state_dir", "cgroup_root"
)
@timeout_option
@list_form_option
def command(
    claim: str | None, namespace: str | None, form: Form, timeout: float, **options: Any
) -> int:
    """Show what the claims of this node use of what they have.

    claim/NAME: only this one; its name alone, namespace/name and its UID are taken too. Shares of
    the tier hami are told by the region of each container, those of the tier cgroup by the driver's
    cap of the pod, whole GPUs and MIG devices by the driver. Needs neither the API server nor a
    plugin that runs.
    """
    wanted = objects.local_claim(claim, namespace)
    config = settings.load(options)
    found = asyncio.run(
        with_or_without(lambda silent: usage_view.look_at_usage(config, wanted, silent), timeout)
    )
    if form == "table":
        print_table(_HEADER, [_row(one) for one in found.lines])
    elif form == "wide":
        print_table(_WIDE, [_wide_row(one) for one in found.lines])
    elif form == "name":
        print_names("claim", (ref.name for one in found.lines for ref in one.claims))
    else:
        print_data(
            {
                "apiVersion": "gpu.dragoon.dev/v1alpha1",
                "kind": "UsageList",
                "items": [_object(one) for one in found.lines],
            },
            form,
        )
    problems = [
        f"{_claims(one)} on GPU {one.gpu}: {one.problem}" for one in found.lines if one.problem
    ]
    for problem in (*found.problems, *dict.fromkeys(problems)):
        print_note(problem)
    if problems or found.problems:
        print_next("dragoon check --category host,state")
    return exits.FINDINGS if problems or found.problems else exits.FINE


def _row(one: Line) -> Row:
    per_cent = one.per_cent
    full = per_cent is not None and per_cent >= _NEARLY_FULL and one.kind != "whole"
    return (
        _claims(one),
        one.pod_uid,
        one.container,
        one.gpu,
        one.kind,
        _size(one.used),
        _size(one.limit),
        Cell(_number(per_cent), "bad" if full else "plain"),
        _number(one.cores),
        _number(one.processes),
    )


def _wide_row(one: Line) -> Row:
    return (*_row(one), ",".join(ref.uid for ref in one.claims), Cell(one.problem, "bad"))


def _object(one: Line) -> dict[str, Any]:
    return {
        "claims": [
            {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid} for ref in one.claims
        ],
        "podUID": one.pod_uid,
        "container": one.container,
        "gpu": one.gpu,
        "kind": one.kind,
        "usedBytes": one.used,
        "limitBytes": one.limit,
        "usedPercent": one.per_cent,
        "coresLimit": one.cores,
        "processes": one.processes,
        "problem": one.problem,
    }


def _claims(one: Line) -> str:
    return ",".join(f"{ref.namespace}/{ref.name}" for ref in one.claims)


def _size(size: int | None) -> str:
    return "" if size is None else f"{size / _GIB:.1f} GiB"


def _number(number: int | None) -> str:
    return "" if number is None else str(number)
