"""`dragoon gangs`: the gangs of a cluster, and giving them up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from dragoon.api.gang import SETTLED, GangObject
from dragoon.cli import exits, objects
from dragoon.cli.answers import print_section
from dragoon.cli.asking import ask, kubeconfig_option
from dragoon.cli.calling import Family
from dragoon.cli.cluster_source import looking_at, snapshot_option
from dragoon.cli.durations import cluster_timeout_option
from dragoon.cli.given import TEXT
from dragoon.cli.output import (
    Cell,
    Form,
    Row,
    Tone,
    form_option,
    list_form_option,
    print_data,
    print_names,
    print_next,
    print_note,
    print_table,
)
from dragoon.diagnose import saving
from dragoon.diagnose.codes import API_VERSION
from dragoon.errors import InvalidInputError

_HEADER: Final = ("NAMESPACE", "NAME", "READY", "PHASE", "AGE", "WAITING FOR")
_WIDE: Final = (*_HEADER, "SOURCE", "NODES", "WHY")
_BAD: Final = frozenset(("Invalid", "Stuck"))

_namespace = click.option("-n", "--namespace", type=TEXT, help="Only in this namespace.")


@click.group(cls=Family, invoke_without_command=True)
@_namespace
@snapshot_option
@kubeconfig_option
@cluster_timeout_option
@list_form_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    namespace: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    timeout: float,
    form: Form,
) -> int | None:
    """Show the gangs of the cluster: how many members run, and what they wait for."""
    if ctx.invoked_subcommand is not None:
        _refuse_what_is_given_before(ctx)
        return None
    from dragoon.app import gang_view  # noqa: PLC0415 - half a second, not for --help

    found = _look(namespace, snapshot, kubeconfig, timeout)
    if form == "name":
        print_names(objects.GANG, (one.name for one in found))
    elif form in {"table", "wide"}:
        now = datetime.now(UTC)
        rows = [(one, _row(one, gang_view.age(one.created, now))) for one in found]
        if form == "table":
            print_table(_HEADER, [row for _, row in rows])
        else:
            print_table(_WIDE, [(*row, *_more(one)) for one, row in rows])
    else:
        items = [_plain(one) for one in found]
        print_data({"apiVersion": API_VERSION, "kind": "GangList", "items": items}, form)
    troubled = [one for one in found if one.status.phase in _BAD]
    waiting = [one for one in found if one.status.waiting_for]
    print_next(
        *(
            looking_at(f"dragoon explain gang/{one.name} -n {one.namespace}", snapshot)
            for one in (*troubled, *waiting)[:1]
        )
    )
    return exits.FINDINGS if troubled else exits.FINE


@command.command()
@click.argument("name", metavar="gang/NAME")
@objects.namespace_option
@snapshot_option
@kubeconfig_option
@cluster_timeout_option
def show(
    name: str,
    namespace: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    timeout: float,
) -> int:
    """Show one gang: why it waits, its conditions, where its members are."""
    from dragoon.app import gang_view  # noqa: PLC0415 - half a second, not for --help

    name = objects.named(name, objects.GANG, bare=objects.GANG).name
    space = objects.namespace_of(namespace, kubeconfig, snapshot)
    every = _look(space, snapshot, kubeconfig, timeout)
    found = next((one for one in every if one.name == name), None)
    if found is None:
        raise InvalidInputError(f"gang {space}/{name}: not found")
    click.echo(f"gang {found}: {found.status.phase or 'not seen yet'}, {_ready(found)} ready")
    for title, lines in gang_view.details(found):
        print_section(title, lines)
    print_next(looking_at(f"dragoon explain gang/{name} -n {space}", snapshot))
    return exits.FINDINGS if found.status.phase in _BAD else exits.FINE


@command.command()
@click.argument("name", required=False, metavar="[gang/NAME]")
@click.option("--all", "everything", is_flag=True, help="Every gang, every gate and every rule.")
@objects.namespace_option
@kubeconfig_option
def release(
    name: str | None, namespace: str | None, kubeconfig: Path | None, *, everything: bool
) -> int:
    """Give up a gang: let its pods go and remove its rules.

    Works without a controller, and is what to run before Dragoon is removed: with --all no pod is
    held and no rule is left. Pods whose devices are allocated keep them.
    """
    if bool(name) is everything:
        raise InvalidInputError(
            "found both a name and --all, allowed is one of them"
            if name
            else "found neither a name nor --all, allowed is one of them"
        )
    from dragoon.app import gang_view  # noqa: PLC0415 - half a second, not for --help

    only = "" if name is None else objects.named(name, objects.GANG, bare=objects.GANG).name
    space = "" if everything else objects.namespace_of(namespace, kubeconfig)
    done = ask(kubeconfig, lambda api: gang_view.give_up(api, namespace=space, name=only))
    click.echo(
        f"pods let go: {done.pods}, rules removed: {done.rules}, plans dropped: {done.plans}"
    )
    print_next("dragoon check --category gang")
    return exits.FINE


@command.command("make-room")
@click.argument("name", metavar="gang/NAME")
@click.option(
    "--evict", is_flag=True, help="Evict those pods; disruption budgets are kept (pods/eviction)."
)
@objects.namespace_option
@kubeconfig_option
@cluster_timeout_option
@form_option
def make_room(
    name: str,
    namespace: str | None,
    kubeconfig: Path | None,
    timeout: float,
    form: Form,
    *,
    evict: bool,
) -> int:
    """Say which pods of lower priority would have to leave for a gang to fit.

    The least priority first, then as few pods as are found. The answer was planned with just these
    gone. Pods of one gang, and pods that share a claim, leave together.
    """
    from dragoon.app import room_view  # noqa: PLC0415 - half a second, not for --help

    name = objects.named(name, objects.GANG, bare=objects.GANG).name
    space = objects.namespace_of(namespace, kubeconfig)
    found = ask(kubeconfig, lambda api: room_view.room_for(api, space, name), timeout)
    asked = ask(kubeconfig, lambda api: room_view.evict(api, found.pods)) if evict else []
    if form == "table":
        click.echo(f"gang {found.gang}: {found.lines[0]}")
        for line in found.lines[1:]:
            click.echo(f"  {line}")
        print_section("evicted", [one.pod for one in asked if not one.refusal])
        print_section("refused", [f"{one.pod}: {one.refusal}" for one in asked if one.refusal])
    else:
        print_data(room_view.plain(found, asked), form)
    if found.pods and not evict:
        print_next(f"dragoon gangs make-room gang/{name} -n {space} --evict")
    refused = any(one.refusal for one in asked)
    return exits.FINE if found.is_fine and not refused else exits.FINDINGS


def _refuse_what_is_given_before(ctx: click.Context) -> None:
    """Options of the list say nothing to a command below it: another cluster would be asked."""
    for name in ctx.params:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"found --{'output' if name == 'form' else name} before {ctx.invoked_subcommand!r}, "
                "allowed is after it",
                ctx,
            )


def _look(
    namespace: str | None, snapshot: Path | None, kubeconfig: Path | None, timeout: float
) -> list[GangObject]:
    """The gangs that are there; what cannot be read of a saved cluster is told on stderr."""
    from dragoon.app import gang_view  # noqa: PLC0415 - half a second, not for --help

    if snapshot is None:
        return ask(kubeconfig, lambda api: gang_view.gangs_in(api, namespace), timeout)
    found, unread = gang_view.saved_gangs(saving.load(snapshot), namespace)
    for one in unread:
        print_note(one)
    return found


def _row(one: GangObject, age: str) -> Row:
    phase = one.status.phase or ""
    tone: Tone = "good" if phase in SETTLED else "bad" if phase in _BAD else "plain"
    return [
        one.namespace,
        one.name,
        _ready(one),
        Cell(phase, tone),
        age,
        one.status.waiting_for,
    ]


def _more(gang: GangObject) -> Row:
    plan = gang.status.plan
    nodes = [one.node for one in plan.members] + [one.node for one in plan.held] if plan else []
    source = gang.spec.source.name if gang.spec.source else ""
    return (source, ",".join(sorted(set(nodes))), "; ".join(gang.status.explanation))


def _ready(one: GangObject) -> str:
    return one.status.members.summary or f"0/{one.spec.size}"


def _plain(one: GangObject) -> dict[str, Any]:
    return {
        "namespace": one.namespace,
        "name": one.name,
        "size": one.spec.size,
        "ready": one.status.members.ready,
        "phase": str(one.status.phase or ""),
        "waitingFor": one.status.waiting_for,
        "explanation": list(one.status.explanation),
    }
