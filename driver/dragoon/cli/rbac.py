"""`dragoon rbac`: the rights the plugin needs, ready to apply."""

import click
import yaml

from dragoon.api.names import DRIVER_NAME
from dragoon.app import permissions


@click.command()
@click.option("--driver-name", default=DRIVER_NAME, show_default=True, help="The driver's name.")
@click.option(
    "--service-account",
    default="dragoon-plugin",
    show_default=True,
    help="The ServiceAccount that the plugin's pods use.",
)
@click.option("--namespace", default="dragoon-system", show_default=True, help="Its namespace.")
@click.option(
    "--kubelets-read-claims/--no-kubelets-read-claims",
    default=True,
    show_default=True,
    help="Let kubelets read every claim: without it, bursts of pods may wait a minute.",
)
def command(
    *, driver_name: str, service_account: str, namespace: str, kubelets_read_claims: bool
) -> None:
    """Print the rights the plugin needs, as YAML for kubectl apply."""
    found = permissions.objects(
        driver_name,
        service_account=service_account,
        namespace=namespace,
        kubelets_read_claims=kubelets_read_claims,
    )
    click.echo(yaml.safe_dump_all(found, sort_keys=False), nl=False)
