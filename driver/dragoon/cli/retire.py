"""`dragoon retire`: before and after Dragoon is taken out of a cluster; for the chart's hooks."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dragoon.cli import exits
from dragoon.cli.asking import ask, kubeconfig_option
from dragoon.cli.given import driver_name_option
from dragoon.cli.output import print_next, print_table

if TYPE_CHECKING:
    from dragoon.app.retiring import Holder, Retired

_STAYS: Final = (
    "the CRD gangs.dragoon.dev with {gangs} Gangs: kubectl delete crd gangs.dragoon.dev",
    "on each node the folder plugins/{driver} in the kubelet's root folder: no claim is in it",
    "labels and taints of yours named dragoon.dev/..., and the namespace with its labels",
    "claims, templates and classes of your own",
)


@click.command()
@click.option("--check", is_flag=True, help="Only say which claims still hold devices.")
@driver_name_option
@kubeconfig_option
def command(driver_name: str, kubeconfig: Path | None, *, check: bool) -> int:
    """Remove what plugin and controller left in the cluster, after they have gone.

    Lets the pods of all gangs go, removes their rules and plans, the driver's ResourceSlices and
    the finalizers of claims that hold nothing, and says what stays. `helm uninstall` runs it: first
    with --check, which fails while claims hold devices, since their pods could never end without
    the plugin.
    """
    # Imported here: half a second, and --help needs none of it.
    from dragoon.app import retiring  # noqa: PLC0415

    if check:
        return _tell_holders(
            driver_name, ask(kubeconfig, lambda api: retiring.holders(api, driver_name))
        )
    _tell_retired(driver_name, ask(kubeconfig, lambda api: retiring.retire(api, driver_name)))
    return exits.FINE


def _tell_holders(driver: str, found: "list[Holder]") -> int:
    if not found:
        click.echo(f"no claim holds a device of {driver}")
        return exits.FINE
    rows = [[one.namespace, one.name, ", ".join(one.pods) or "none"] for one in found]
    print_table(("NAMESPACE", "CLAIM", "PODS"), rows)
    click.echo(
        f"Claims that hold devices of {driver}: {len(found)}. Without the plugin their pods never "
        "end, and their containers lose their devices at a restart."
    )
    first = found[0]
    print_next(
        *(f"kubectl delete pod {pod} -n {first.namespace}" for pod in first.pods[:1]),
        "helm uninstall, again; with --no-hooks it goes all the same",
    )
    return exits.FINDINGS


def _tell_retired(driver: str, done: "Retired") -> None:
    released = done.released
    click.echo(
        f"pods let go: {released.pods}, rules removed: {released.rules}, plans dropped: "
        f"{released.plans}, slices removed: {done.slices}, finalizers removed: {done.claims}"
    )
    click.echo("What stays:")
    for line in _STAYS:
        click.echo(f"- {line.format(driver=driver, gangs=done.gangs)}")
