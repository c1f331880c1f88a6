"""`dragoon rbac`: the rights that a process needs, ready to apply."""

import click
import yaml

from dragoon.app import permissions
from dragoon.cli.given import TEXT, driver_name_option


@click.command()
@click.option(
    "--for",
    "process",
    type=click.Choice(["plugin", "controller"]),
    default="plugin",
    show_default=True,
    help="Which process.",
)
@driver_name_option
@click.option(
    "--service-account",
    type=TEXT,
    default=None,
    help="The ServiceAccount that its pods use.  [default: dragoon-plugin, dragoon-controller]",
)
@click.option(
    "--namespace", type=TEXT, default="dragoon-system", show_default=True, help="Its namespace."
)
@click.option(
    "--kubelets-read-claims/--no-kubelets-read-claims",
    default=True,
    show_default=True,
    help="With the plugin's: let kubelets read every claim. Without it, bursts of pods may wait a "
    "minute.",
)
def command(
    *,
    process: str,
    driver_name: str,
    service_account: str | None,
    namespace: str,
    kubelets_read_claims: bool,
) -> None:
    """Print the rights a process needs, as YAML for kubectl apply."""
    account = service_account or f"dragoon-{process}"
    if process == "controller":
        found = permissions.controller_objects(
            driver_name, service_account=account, namespace=namespace
        )
    else:
        found = permissions.objects(
            driver_name,
            service_account=account,
            namespace=namespace,
            kubelets_read_claims=kubelets_read_claims,
        )
    click.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)
