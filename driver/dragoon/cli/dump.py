"""`dragoon dump`: one file with what a maintainer needs, and without secrets."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import click

from dragoon.app import hardware
from dragoon.app.config import PluginConfig
from dragoon.cli import exits, settings
from dragoon.cli.asking import kubeconfig_option
from dragoon.cli.cluster_source import looking_at
from dragoon.cli.durations import task_timeout_option
from dragoon.cli.given import PATH, TEXT
from dragoon.cli.output import print_next, print_note
from dragoon.errors import ApiUnavailableError, ConfigError, InvalidInputError, StateError

_STDOUT: Final = "-"


@click.command()
@click.option(
    "-o",
    "--output",
    "target",
    type=TEXT,
    metavar="FILE",
    help="The new file, - for stdout.  [default: dragoon-dump-TIME.tar.gz]",
)
@click.option("--local", is_flag=True, help="This node alone, without asking an API server.")
@kubeconfig_option
@click.option(
    "--runtime-config",
    type=PATH,
    help="What `containerd config dump` or `crio status config` printed.",
)
@task_timeout_option
@settings.setting_options(
    *hardware.SETTINGS,
    *("driver_name", "forms", "mig_profiles", "kubelet_root", "state_dir", "cdi_root"),
    *("cgroup_root", "listen"),
)
def command(
    *,
    target: str | None,
    local: bool,
    kubeconfig: Path | None,
    runtime_config: Path | None,
    timeout: float,
    **options: Any,
) -> int:
    """Collect what a maintainer needs into one file, for --snapshot of other commands.

    From a laptop it holds the cluster, on a node the node too. Each task fails alone: what could not
    be collected is told here, and in dump.json of the archive, which also lists what is left out:
    environment, commands, images, annotations and configs of others. Names, labels and selectors
    are in it: look before you send it. From a pod: kubectl exec POD -- dragoon dump -o - > FILE
    """
    config = settings.load(options)
    name = target or time.strftime("dragoon-dump-%Y%m%d-%H%M%S.tar.gz", time.gmtime())
    _check_target(name)
    data, errors, is_empty = asyncio.run(
        _collect(config, kubeconfig, runtime_config, local=local, seconds=timeout)
    )
    _write(name, data)
    for error in errors:
        print_note(f"not collected: {error}")
    if name != _STDOUT:
        click.echo(name)
        print_next(looking_at("dragoon status", Path(name)))
    return exits.UNREACHABLE if is_empty else exits.FINE


async def _collect(
    config: PluginConfig,
    kubeconfig: Path | None,
    runtime: Path | None,
    *,
    local: bool,
    seconds: float,
) -> tuple[bytes, list[str], bool]:
    """The archive, what could not be collected, and whether nothing could."""
    from dragoon.app import dumping  # noqa: PLC0415 - a second: not for --help
    from dragoon.app.evidence import node  # noqa: PLC0415
    from dragoon.diagnose import archive  # noqa: PLC0415
    from dragoon.diagnose.redacting import REDACTED  # noqa: PLC0415
    from dragoon.kube.connecting import connect  # noqa: PLC0415

    tasks: list[dumping.Task] = []
    api = None
    missing: list[str] = []
    if not local:
        try:
            api = await connect(kubeconfig, patience=seconds)
            tasks += dumping.cluster_tasks(api, api.server, config, seconds=seconds)
        except ConfigError as error:
            if kubeconfig is not None:
                raise
            missing.append(f"cluster: {error.message}")
        except ApiUnavailableError as error:
            missing.append(f"cluster: {error.message}")
    here = local or node.is_node(config)
    try:
        tasks += dumping.node_tasks(config, runtime, seconds=seconds) if here else ()
        done = await dumping.collect(tasks, seconds=seconds)
    finally:
        if api is not None:
            await api.close()
    now = int(time.time())
    files = {name: data for one in done for name, data in one.files.items()}
    contents = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "tasks": [one.data() for one in done],
        "missing": missing,
        "redacted": list(REDACTED),
    }
    errors = [*missing, *(f"{one.name}: {one.error}" for one in done if one.error)]
    return archive.pack(files, contents, created=now), errors, not files


def _check_target(name: str) -> None:
    """Asked before anything is collected, which can take minutes. Raises InvalidInputError."""
    if name == _STDOUT:
        if sys.stdout.isatty():
            raise InvalidInputError(
                "--output: found a terminal, allowed is a file or a pipe",
                hint="redirect it into a file",
            )
    elif os.path.lexists(name):
        raise InvalidInputError(f"--output: found a file {name}, allowed is the name of a new one")
    elif not os.access(Path(name).parent, os.W_OK | os.X_OK):
        raise InvalidInputError(
            f"--output: found {name}, allowed is the name of a new file in a folder that is there "
            "and can be written"
        )


def _write(name: str, data: bytes) -> None:
    """A new file, mode 0600, or stdout. Raises StateError."""
    if name == _STDOUT:
        sys.stdout.buffer.write(data)
        return
    try:
        opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(data)
    except OSError as error:
        raise StateError(f"{name}: cannot be written: {error.strerror}") from error
