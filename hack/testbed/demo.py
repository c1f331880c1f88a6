"""`hack/demo --real`: the story of `dragoon demo` on a real Kubernetes on this machine."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import click

from dragoon.app.demo import story
from dragoon.cli.demo import MACHINE, Terminal
from dragoon.cli.main import wants_colour
from dragoon.errors import DragoonError
from realcluster import bringup, teardown
from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from realcluster.layout import default_name
from testbed.bed import Bed
from testbed.plugins import Plugin, install
from testbed.stage import RealStage


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def main(ctx: click.Context) -> None:
    """Show the main job on a real Kubernetes on this machine (root, Linux, Go)."""
    ctx.color = wants_colour("auto", os.environ, is_terminal=sys.stdout.isatty())
    ctx.exit(_run())


def _run() -> int:
    """Plays on a cluster of its own, which is gone afterwards; answers the exit code."""
    name = f"demo-{default_name()}"
    click.echo(
        "Starting a real Kubernetes; the first time on a machine it is built from source ..."
    )
    try:
        teardown.down(name)
        bringup.up(name, node_count=1)
        return _play(Cluster.open(name))
    except (ClusterError, DragoonError) as error:
        click.echo(f"error: {error}", err=True)
        return 4
    except KeyboardInterrupt:
        return 130
    finally:
        teardown.down(name)


def _play(cluster: Cluster) -> int:
    (node,) = cluster.nodes
    with tempfile.TemporaryDirectory(prefix="dragoon-demo-") as folder:
        install(cluster)
        plugin = Plugin(cluster, node, Path(folder), MACHINE)
        try:
            plugin.start_and_wait()
            stage = RealStage(Bed(cluster, {node.name: plugin}))
            asyncio.run(story.tell(stage, Terminal(), program=".venv/bin/dragoon"))
        finally:
            plugin.stop()
    return 0


if __name__ == "__main__":
    main(prog_name="hack/demo --real")
