"""`dragoon status`: one screen about a cluster, or about this node."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from dragoon.app import hardware
from dragoon.app.config import PluginConfig
from dragoon.app.patience import DRIVER_SECONDS, with_or_without
from dragoon.cli import cluster_source, exits, objects, settings
from dragoon.cli.answers import print_section
from dragoon.cli.durations import CLUSTER_SECONDS, either_timeout_option
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    Tone,
    list_form_option,
    print_data,
    print_names,
    print_next,
    print_note,
    print_table,
)
from dragoon.diagnose import saving
from dragoon.diagnose.checking import (
    OF_CLUSTER,
    OF_NODE,
    Evidence,
    Report,
    Result,
    Unread,
    run,
)
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.diagnose.standing import (
    CLOSED,
    STATES,
    TAINTED,
    USED,
    NodeStanding,
    Standing,
    standing,
)
from dragoon.errors import ApiUnavailableError, ConfigError, InvalidInputError

_SHOWN: Final = 20
"""Nodes, gangs and problems on the screen; the troubled ones first."""
_NODES: Final = ("NODE", "FORM", "DEVICES", *(state.upper() for state in STATES), "WHY")
_DEVICES: Final = ("DEVICE", "FORM", "STATE", "CLAIMS", "TAINTS", "WHY")
_TONES: Final[dict[str, Tone]] = {TAINTED: "bad", USED: "plain"}


@click.command()
@click.argument("what", required=False, metavar="[node/NAME]")
@click.option("--local", is_flag=True, help="This node alone, without asking an API server.")
@cluster_source.source_options
@settings.setting_options(
    *hardware.SETTINGS,
    *("driver_name", "forms", "mig_profiles", "kubelet_root", "state_dir", "cdi_root"),
    *("cgroup_root", "hami_library", "hami_sha256", "allow_unenforced_shares", "listen"),
)
@either_timeout_option
@list_form_option
def command(
    what: str | None,
    *,
    local: bool,
    snapshot: Path | None,
    kubeconfig: Path | None,
    save: Path | None,
    form: Form,
    timeout: float | None,
    **options: Any,
) -> int:
    """Show how the cluster stands: processes, devices by form, gangs that wait, problems.

    node/NAME: every device of that node, and who has it. On a node where no API server can be
    asked, it tells of that node: what it would publish, and what is prepared there.
    """
    node = "" if what is None else objects.named(what, objects.NODE).name
    config = settings.load(options)
    found, report = _look(config, snapshot, kubeconfig, timeout, local=local)
    if save is not None:
        cluster_source.keep(found, save)
    told = standing(found, driver=config.driver_name, node=node)
    if node and not told.nodes:
        raise InvalidInputError(
            f"node/{node}: no node of that name has devices of {config.driver_name}",
            hint=f"not looked at: {'; '.join(told.missing)}" if told.missing else None,
        )
    if form in {"table", "wide"}:
        _print(told, report, of_node=bool(node), wide=form == "wide")
    elif form == "name" and node:
        print_names("device", (device.name for one in told.nodes for device in one.devices))
    elif form == "name":
        print_names(objects.NODE, (one.name for one in told.nodes))
    else:
        print_data({**told.data(), "problems": [one.data() for one in report.found]}, form)
    print_next(cluster_source.looking_at(_next(told, report, node), snapshot))
    return exits.FINE if report.is_fine else exits.FINDINGS


def _look(
    config: PluginConfig,
    snapshot: Path | None,
    kubeconfig: Path | None,
    timeout: float | None,
    *,
    local: bool,
) -> tuple[ClusterSnapshot, Report]:
    if snapshot is not None:
        return _of_cluster(config, saving.load(snapshot))
    if not local:
        try:
            seconds = timeout or CLUSTER_SECONDS
            return _of_cluster(config, cluster_source.look(None, kubeconfig, None, seconds))
        except (ConfigError, ApiUnavailableError) as error:
            if kubeconfig is not None or not _is_node(config):
                raise
            print_note(f"this node alone: {error.message}")
    return asyncio.run(_of_node(config, timeout or DRIVER_SECONDS))


def _of_cluster(config: PluginConfig, found: ClusterSnapshot) -> tuple[ClusterSnapshot, Report]:
    seen = Evidence(driver_name=config.driver_name, cluster=found)
    if found.version:
        seen = replace(seen, version=found.version)
    return found, run(seen, OF_CLUSTER)


def _is_node(config: PluginConfig) -> bool:
    from dragoon.app.evidence import node  # noqa: PLC0415 - grpc: only where it is needed

    return node.is_node(config)


async def _of_node(config: PluginConfig, timeout: float) -> tuple[ClusterSnapshot, Report]:
    from dragoon.app import status_view  # noqa: PLC0415 - as above
    from dragoon.app.evidence import node  # noqa: PLC0415

    seen = await node.gather(
        Evidence(driver_name=config.driver_name), config, None, patience=timeout
    )
    silent = seen.inventory.why if isinstance(seen.inventory, Unread) else ""
    found = await with_or_without(lambda why: status_view.look(config, silent or why), timeout)
    return found, run(seen, OF_NODE)


def _print(told: Standing, report: Report, *, of_node: bool, wide: bool) -> None:
    version = f": Kubernetes {told.version}" if told.version else ""
    click.secho(f"{told.source}{version}", bold=True)
    for process in told.processes:
        click.echo(f"  {process}")
    if told.allocated or told.pending:
        click.echo(f"  claims: {told.allocated} with our devices, {told.pending} waiting")
    click.echo()
    if of_node:
        for node in told.nodes:
            _print_table(_DEVICES, _device_rows(node), wide=wide)
    elif told.nodes:
        _print_table(_NODES, _node_rows(told, None if wide else _SHOWN), wide=wide)
        if len(told.nodes) > _SHOWN and not wide:
            click.echo(f"and {len(told.nodes) - _SHOWN} more nodes: -o wide has all")
    else:
        click.echo("no device is published")
    _print_rest(told, report)


def _print_table(header: tuple[str, ...], rows: Iterable[Row], *, wide: bool) -> None:
    """Without the last column, WHY, unless it is wide."""
    print_table(header if wide else header[:-1], [row if wide else row[:-1] for row in rows])


def _print_rest(told: Standing, report: Report) -> None:
    gangs = [
        f"{one.namespace}/{one.name} {one.phase or 'not seen yet'}"
        + (f": {one.waiting_for}" if one.waiting_for else "")
        for one in told.gangs
    ]
    running = f"gangs ({told.running_gangs} running, {len(gangs)} not)"
    print_section(running, _limited(gangs, "dragoon gangs"))
    problems = [
        f"{one.check.severity} {one.check.code} {problem.about}: {problem.found}"
        for one in _found(report)
        for problem in one.problems
    ]
    print_section("problems", _limited(problems, "dragoon check"))
    print_section("not looked at", told.missing)


def _found(report: Report) -> Iterator[Result]:
    """What is wrong, without what is only worth knowing."""
    return (one for one in report.found if one.check.severity != "info")


def _limited(lines: list[str], command: str) -> Iterator[str]:
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"and {len(lines) - _SHOWN} more: {command}"


def _node_rows(told: Standing, limit: int | None) -> Iterator[Row]:
    """All together, then the nodes, those with something wrong first."""
    for form, counts in sorted(told.totals.items() if len(told.nodes) > 1 else ()):
        yield ("all", form, str(counts.total()), *_cells(counts), "")
    ranked = sorted(told.nodes, key=lambda one: (not _is_troubled(one), one.name))
    for node in ranked[:limit]:
        for form, counts in sorted(node.counts().items()):
            yield (node.name, form, str(counts.total()), *_cells(counts), Cell(node.problem, "bad"))


def _cells(counts: Any) -> Iterable[Cell]:
    return (
        Cell(str(counts[state]), _TONES.get(state, "plain") if counts[state] else "faint")
        for state in STATES
    )


def _is_troubled(node: NodeStanding) -> bool:
    return bool(node.problem) or any(one.state == TAINTED for one in node.devices)


def _device_rows(node: NodeStanding) -> Iterator[Row]:
    for one in node.devices:
        yield (
            one.name,
            one.form,
            Cell(one.state, _TONES.get(one.state, "plain")),
            ",".join(one.holders),
            Cell(",".join(one.taints), "bad"),
            Cell(node.problem if one.state == CLOSED else "", "bad"),
        )


def _next(told: Standing, report: Report, node: str) -> str:
    for one in _found(report):
        for problem in one.problems:
            if problem.after and problem.after != f"dragoon status node/{node}":
                return problem.after
    for gang in told.gangs:
        return f"dragoon explain gang/{gang.name} -n {gang.namespace}"
    return "dragoon check"
