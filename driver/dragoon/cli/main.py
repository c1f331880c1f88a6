"""The `dragoon` command: options for all commands, errors to messages and exit codes.

Imports click and the error classes, nothing heavier: `dragoon --help` costs a few interpreter
starts, guarded by a test.
"""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import click

from dragoon.api.visible import one_line, typed
from dragoon.cli import exits
from dragoon.cli.calling import called
from dragoon.cli.lazy import Lazy, LazyGroup
from dragoon.cli.terminal import guarded
from dragoon.errors import DragoonError

_ASK: Final = "Ask"
_LOOK: Final = "Look"
_COLLECT: Final = "Collect"
_RUN: Final = "Run"
_WRITE: Final = "Print what to apply"

_EXPLAIN: Final = (
    "Say why a claim, a pod or a gang has its devices, or why it waits and what would help."
)

COMMANDS: Final = {
    "status": Lazy(
        "status",
        "Show how the cluster stands: processes, devices by form, gangs that wait, problems.",
        _ASK,
    ),
    "explain": Lazy("explain", _EXPLAIN, _ASK),
    "why": Lazy("why", _EXPLAIN, _ASK, alias_of="explain"),
    "simulate": Lazy(
        "simulate",
        "Say what would be allocated if these files were applied; nothing is written.",
        _ASK,
    ),
    "check": Lazy(
        "check",
        "Check this node and this cluster: what is wrong, why it matters, and what to do.",
        _ASK,
    ),
    "lint": Lazy("lint", "Check manifests of claims, pods and classes, without a cluster.", _ASK),
    "devices": Lazy("devices", "Show the devices that this node would publish.", _LOOK),
    "topo": Lazy("topo", "Show how the GPUs of this node are connected.", _LOOK),
    "mig": Lazy("mig", "Show how the GPUs of this node are divided by MIG.", _LOOK),
    "usage": Lazy("usage", "Show what the claims of this node use of what they have.", _LOOK),
    "map": Lazy(
        "map",
        "Draw the GPUs of the cluster: who holds what, and which gangs wait and why.",
        _LOOK,
    ),
    "gangs": Lazy(
        "gangs",
        "Show the gangs of the cluster: how many members run, and what they wait for.",
        _LOOK,
    ),
    "cdi": Lazy("cdi", "Show what containers get, and try it on an OCI runtime spec.", _LOOK),
    "dump": Lazy(
        "dump",
        "Collect what a maintainer needs into one file, for --snapshot of other commands.",
        _COLLECT,
    ),
    "plugin": Lazy(
        "plugin",
        "Run the node process: publish this node's GPUs and prepare claims for its kubelet.",
        _RUN,
    ),
    "controller": Lazy(
        "controller",
        "Run the controller: place gangs, watch over all claims, wake kubelets that wait.",
        _RUN,
    ),
    "retire": Lazy(
        "retire",
        "Remove what plugin and controller left in the cluster, after they have gone.",
        _RUN,
    ),
    "demo": Lazy("demo", "Show the main job on this machine: no cluster, no GPU.", _RUN),
    "claim": Lazy("claim", "Print claims that are ready to paste.", _WRITE),
    "rbac": Lazy("rbac", "Print the rights a process needs, as YAML for kubectl apply.", _WRITE),
    "version": Lazy("version", "Show the version.", "Else"),
    "reference": Lazy("reference", "Print a page that is made from the code.", hidden=True),
}

_EPILOG = "Exit codes: " + "; ".join(f"{code} {text}" for code, text in exits.MEANINGS.items())


class Root(LazyGroup):
    """The root group: turns whatever a command raises into one message and an exit code."""

    def invoke(self, ctx: click.Context) -> int:
        """Runs the command; answers its exit code."""
        try:
            code = super().invoke(ctx) or exits.FINE
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            _drop_stdout()
            code = exits.FINE
        except DragoonError as error:
            _say(error.message, error.hint, exits.next_of(error, called(ctx)))
            code = exits.code_of(error)
            _show_traceback(ctx)
        except Exception as error:  # noqa: BLE001 - the last line of defence of a command
            code = _unforeseen(error)
            _show_traceback(ctx)
        return int(code)


@click.group(
    cls=Root,
    lazy=COMMANDS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour the output; auto: on a terminal, unless NO_COLOR is set.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def root(ctx: click.Context, *, color: str, debug: bool) -> None:
    """Dragoon: a Kubernetes DRA driver for NVIDIA GPUs."""
    del debug  # read by Root from the context, when something fails
    ctx.color = wants_colour(color, os.environ, is_terminal=sys.stdout.isatty())


def wants_colour(choice: str, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether to colour: the flag, then NO_COLOR (https://no-color.org), then the terminal."""
    if choice != "auto":
        return choice == "always"
    return is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def run(arguments: Sequence[str], command: click.Command = root) -> int:
    """Runs one command line and answers its exit code; never raises what a command raised.

    What is printed meanwhile is made safe for a terminal.
    """
    with guarded():
        try:
            result: Any = command.main(
                args=list(arguments), prog_name="dragoon", standalone_mode=False
            )
        except click.Abort:
            return exits.INTERRUPTED
        except click.ClickException as error:
            error.show()
            return exits.USAGE
        except OSError as error:  # The help itself, which is told before any command runs.
            return _unforeseen(error)
        return int(result)


def main() -> NoReturn:
    """The console script."""
    # Whoever starts us with a closed stream does not want it; and no file may take its number.
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    sys.exit(run(sys.argv[1:]))


def _say(message: str, hint: str, after: str) -> None:
    click.echo(f"{click.style('error:', fg='red')} {one_line(message)}", err=True)
    if hint:
        click.echo(f"{click.style('hint:', fg='yellow')} {one_line(hint)}", err=True)
    click.echo(f"next: {typed(after)}", err=True)


def _unforeseen(error: Exception) -> int:
    if isinstance(error, OSError) and error.errno:
        # What the machine refuses is no fault of ours: a folder of root's, a full disk.
        refused = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        hint = (
            "run it as a user who may, such as root" if isinstance(error, PermissionError) else ""
        )
        _say(str(refused), hint, "dragoon check")
        _drop_what_is_left()
        return exits.UNREACHABLE
    _say(
        f"internal fault: {type(error).__name__}: {error}",
        "this is a bug of Dragoon; run again with --debug for the traceback",
        "dragoon dump",
    )
    return exits.INTERNAL


def _show_traceback(ctx: click.Context) -> None:
    if ctx.params["debug"]:
        click.echo(traceback.format_exc(), err=True, nl=False)


def _drop_what_is_left() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _drop_stdout()


def _drop_stdout() -> None:
    # Nobody takes it; without this the interpreter complains when it flushes at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
