"""`dragoon claim new`: a ResourceClaimTemplate ready to paste."""

from typing import Any, Final

import click
import yaml

from dragoon.cli import exits
from dragoon.cli.calling import Family
from dragoon.cli.given import TEXT
from dragoon.cli.output import print_next, print_note
from dragoon.diagnose.wishing import Wish, problems, template
from dragoon.errors import DragoonError

_HOW: Final = """\
# In the pod:        resourceClaims: [{{name: gpu, resourceClaimTemplateName: {name}}}]
# In the container:  resources: {{claims: [{{name: gpu}}]}}
"""


@click.group(cls=Family)
def command() -> None:
    """Print claims that are ready to paste."""


@command.command()
@click.option("--name", type=TEXT, help="Of the template; without it a name that says what it is.")
@click.option("--gpus", default=1, show_default=True, help="How many devices.")
@click.option("--memory", type=TEXT, metavar="AMOUNT", help="Each with at least so much, 40Gi.")
@click.option("--share", type=TEXT, metavar="AMOUNT", help="So much of a GPU, capped, 10Gi.")
@click.option("--cores", type=int, help="With --share: at most so many per cent of its compute.")
@click.option("--profile", type=TEXT, metavar="NAME", help="A MIG device, 1g.10gb.")
@click.option("--product", type=TEXT, metavar="TEXT", help="The model's name has this in it.")
@click.option("--same-nvlink", is_flag=True, help="All in one NVLink domain.")
@click.option("--class", "class_name", type=TEXT, metavar="NAME", help="Another DeviceClass.")
def new(**wishes: Any) -> int:
    """Print a ResourceClaimTemplate that asks for GPUs.

    It is checked by the rules of `dragoon lint` before it is printed. Nothing is sent anywhere:
    pipe it into kubectl apply -f - , or into a file.
    """
    given = {name: value for name, value in wishes.items() if value is not None}
    found = template(Wish(**given))
    findings = problems(found)
    wrong = [f"{one.code} {one.path}: {one.found}" for one in findings if one.severity == "error"]
    if wrong:
        raise DragoonError("; ".join(wrong))
    name = found["metadata"]["name"]
    click.echo(_HOW.format(name=name), nl=False)
    click.echo(yaml.safe_dump(found, sort_keys=False, width=1000), nl=False)
    for one in findings:
        instead = f"; instead: {one.instead}" if one.instead else ""
        print_note(f"{one.code} {one.found}{instead}")
    print_next("dragoon simulate -f FILE")
    return exits.FINE
