"""`dragoon check`: what is wrong with this node and this cluster, and what to do about it."""

import asyncio
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import click

from dragoon.api.visible import typed
from dragoon.app import hardware
from dragoon.app.config import PluginConfig
from dragoon.app.patience import DRIVER_SECONDS
from dragoon.cli import exits, settings
from dragoon.cli.asking import kubeconfig_option
from dragoon.cli.cluster_source import looking_at
from dragoon.cli.durations import CLUSTER_SECONDS, SECONDS, either_timeout_option
from dragoon.cli.given import PATH
from dragoon.cli.output import Form, form_option, print_data, print_next, print_note, print_table
from dragoon.cli.waiting import until
from dragoon.diagnose.checking import (
    CATEGORIES,
    OF_CLUSTER,
    OF_NODE,
    Evidence,
    Report,
    Result,
    rules,
    run,
)
from dragoon.diagnose.codes import API_VERSION, SEVERITIES, Severity
from dragoon.errors import ApiUnavailableError, ConfigError, InvalidInputError
from dragoon.prepare.clock import LoopClock

_SHOWN: Final = 10
_COLOURS: Final = {"error": "red", "warning": "yellow", "info": "blue"}

FailOn = Severity | Literal["never"]


@click.command()
@click.option(
    "--category",
    "wanted",
    multiple=True,
    metavar="NAME[,NAME]",
    help=f"Only these: {', '.join(CATEGORIES)}.  In a pod of the cluster: api,gang.",
)
@click.option("--pre", is_flag=True, help="Only what can be checked before anything is installed.")
@click.option("--list", "listing", is_flag=True, help="Only say which checks there are.")
@click.option(
    "--wait",
    type=SECONDS,
    metavar="DURATION",
    help="Look again until nothing as bad as --fail-on is found, or this time is over: 30s, 5m.",
)
@click.option(
    "--fail-on",
    type=click.Choice([*SEVERITIES, "never"]),
    default="error",
    show_default=True,
    help="Where something at least so bad is found, end with 1.",
)
@click.option("--snapshot", type=PATH, help="Check this saved cluster instead of the live one.")
@kubeconfig_option
@click.option(
    "--runtime-config",
    type=PATH,
    help="What `containerd config dump` or `crio status config` printed.",
)
@settings.setting_options(
    *hardware.SETTINGS,
    *("driver_name", "kubelet_root", "state_dir", "cdi_root", "cgroup_root", "listen"),
)
@either_timeout_option
@form_option
def command(
    *,
    wanted: tuple[str, ...],
    pre: bool,
    snapshot: Path | None,
    kubeconfig: Path | None,
    runtime_config: Path | None,
    listing: bool,
    wait: float | None,
    fail_on: FailOn,
    timeout: float | None,
    form: Form,
    **options: Any,
) -> int:
    """Check this node and this cluster: what is wrong, why it matters, and what to do.

    On a node it needs neither the API server nor a plugin that runs; from elsewhere it looks at the
    cluster alone. Nothing is changed: what is asked of the API server as a dry run is never stored.
    What cannot be looked at is not checked, and told with the reason and the missing right. Ends with
    1 where something as bad as --fail-on is found, with 3 where nothing could be checked. docs/checks.md has every code.
    """
    categories = _categories(wanted)
    if listing:
        _print_list(categories, form, before=pre)
        return exits.FINE
    if wait is not None and snapshot is not None:
        raise InvalidInputError(
            "--wait: found with --snapshot, allowed is a cluster that can change"
        )
    config = settings.load(options)
    place = _Place(config, categories, snapshot, kubeconfig, runtime_config, timeout)
    report = asyncio.run(_report(place, wait or 0.0, fail_on, before=pre))
    if form == "table":
        for category in categories:
            _print(category, [one for one in report.results if one.category == category], snapshot)
    else:
        print_data(_data(report), form)
    first = next((p.after for one in report.found for p in one.problems if p.after), "")
    print_next(looking_at(first or "dragoon status", snapshot))
    if report.is_blind:
        return exits.UNREACHABLE
    return exits.FINDINGS if _bad(report, fail_on) else exits.FINE


def _bad(report: Report, fail_on: FailOn) -> list[str]:
    """The codes of what is at least that bad."""
    if fail_on == "never":
        return []
    return [one.check.code for one in report.results if one.is_as_bad_as(fail_on)]


def _categories(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Raises InvalidInputError for a name that is none."""
    names = [name.strip() for text in wanted for name in text.split(",")]
    for name in names:
        if name not in CATEGORIES:
            raise InvalidInputError(
                f"--category: found {name!r}, allowed are {', '.join(CATEGORIES)}"
            )
    return tuple(name for name in CATEGORIES if not names or name in names)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to look. runtime: what the runtime printed.

    timeout: seconds for the driver, and for all answers of the API server; None for the defaults.
    """

    config: PluginConfig
    categories: tuple[str, ...]
    snapshot: Path | None
    kubeconfig: Path | None
    runtime: Path | None
    timeout: float | None


async def _report(place: _Place, seconds: float, fail_on: FailOn, *, before: bool) -> Report:
    """What is found; looks again for so many seconds while that is bad, or nothing."""
    # Each text once: what does not change is not told again.
    note = functools.cache(lambda text: print_note(f"{text}, looking again"))

    async def look() -> Report:
        return run(await _gather(place), place.categories, before=before)

    def tell(report: Report) -> None:
        note(", ".join(_bad(report, fail_on)) or "nothing could be checked")

    return await until(
        look,
        lambda report: not report.is_blind and not _bad(report, fail_on),
        seconds,
        LoopClock(),
        tell,
    )


async def _gather(place: _Place) -> Evidence:
    from dragoon.app.evidence import node  # noqa: PLC0415 - grpc: not for --help

    config, categories = place.config, place.categories
    evidence = Evidence(driver_name=config.driver_name)
    explicit = len(categories) < len(CATEGORIES)
    if not set(OF_NODE).isdisjoint(categories):
        # Whoever names what only a node has means this machine, whatever it looks like.
        here = place.snapshot is None and (
            node.is_node(config) or (explicit and "state" not in categories)
        )
        evidence = (
            await node.gather(
                evidence, config, place.runtime, patience=place.timeout or DRIVER_SECONDS
            )
            if here
            else node.elsewhere(evidence)
        )
    if set(OF_CLUSTER).isdisjoint(categories):
        return evidence
    return await _of_cluster(evidence, place)


async def _of_cluster(evidence: Evidence, place: _Place) -> Evidence:
    from dragoon.app.evidence import cluster  # noqa: PLC0415 - half a second
    from dragoon.diagnose import saving  # noqa: PLC0415
    from dragoon.kube.connecting import connect  # noqa: PLC0415

    if place.snapshot is not None:
        return cluster.of_saved(evidence, saving.load(place.snapshot))
    patience = place.timeout or CLUSTER_SECONDS
    try:
        api = await connect(place.kubeconfig, patience=patience)
    except ConfigError as error:
        if place.kubeconfig is not None:
            raise
        return cluster.without(evidence, error.message)
    except ApiUnavailableError as error:
        return cluster.without(evidence, error.message)
    try:
        return await cluster.gather(evidence, api, source=api.server, patience=patience)
    finally:
        await api.close()


def _print_list(categories: tuple[str, ...], form: Form, *, before: bool) -> None:
    """The checks themselves, one line each."""
    known = [(name, rule.check) for name, rule in rules(categories, before=before)]
    if form == "table":
        print_table(
            ("CODE", "CATEGORY", "SEVERITY", "FINDS"),
            [(one.code, name, one.severity, one.title) for name, one in known],
        )
        return
    items = [{"category": name, **one.data()} for name, one in known]
    print_data({"apiVersion": API_VERSION, "kind": "CheckDefinitionList", "items": items}, form)


def _data(report: Report) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "CheckList",
        "items": [one.data() for one in report.results],
    }


def _print(category: str, results: list[Result], snapshot: Path | None) -> None:
    made = [one for one in results if not one.skipped]
    found = [one for one in made if one.problems]
    skipped = _skipped(results)
    title = click.style(category, bold=True)
    if not made and len(skipped) == 1:
        click.echo(f"{title}: not checked: {next(iter(skipped))}")
        return
    told = f"{len(found)} found something" if found else "fine"
    click.echo(
        f"{title}: {len(made)} of {len(results)} checked, {told}"
        if made
        else f"{title}: not checked"
    )
    for one in found:
        for line in _lines(one, snapshot):
            click.echo(line)
    for why, codes in skipped.items():
        click.echo(f"  not checked {', '.join(codes)}: {why}")


def _lines(one: Result, snapshot: Path | None) -> Iterator[str]:
    severity = click.style(one.check.severity, fg=_COLOURS[one.check.severity])
    yield f"  {severity} {one.check.code} {one.check.title}"
    for problem in one.problems[:_SHOWN]:
        yield f"    {problem.about}: {problem.found}"
    if len(one.problems) > _SHOWN:
        yield f"    and {len(one.problems) - _SHOWN} more"
    yield f"    remedy: {one.check.remedy}"
    yield f"    see:    {one.check.anchor}"
    after = next((problem.after for problem in one.problems if problem.after), "")
    if after:
        yield f"    next:   {typed(looking_at(after, snapshot))}"


def _skipped(results: list[Result]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for one in results:
        if one.skipped:
            reasons.setdefault(one.skipped, []).append(one.check.code)
    return reasons
