"""The command line of `hack/cluster`."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from realcluster import bringup, builds, kueue, modfiles, packages, processes, teardown, versions
from realcluster.cluster import Cluster
from realcluster.credentials import ADMIN
from realcluster.failure import ClusterError
from realcluster.layout import default_name
from realcluster.state import Settings, State

_Work = Callable[[argparse.Namespace], int | None]
"""What a command does; its exit code, if it has one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    ours, theirs = divided(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(ours)
    options.arguments = theirs
    run: _Work = options.run
    try:
        return run(options) or 0
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def divided(given: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What is for this program, and what for another: that looks like options of ours, too."""
    for number, word in enumerate(given):
        if word == "kubectl":
            return given[: number + 1], given[number + 1 :]
        if word == "--":
            return given[:number], given[number + 1 :]
    return given, ()


def _up(options: argparse.Namespace) -> None:
    print(Path(_started(options).folder) / "state.json")


def _started(options: argparse.Namespace) -> State:
    return bringup.up(
        options.name,
        node_count=options.nodes,
        kubernetes=options.kubernetes,
        settings=Settings(
            scale=options.scale,
            feature_gates=options.feature_gates,
            runtime_config=options.runtime_config,
            usual_paths=options.usual_paths,
        ),
        install=options.install,
    )


def _with(options: argparse.Namespace) -> int:
    """Whoever ends this process ends the command, and the cluster with it."""
    if not options.arguments:
        raise ClusterError("with: found no command, needed is one after `--`")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    teardown.down(options.name)
    try:
        _started(options)
        return _run(options.arguments, Cluster.open(options.name).environment())
    finally:
        teardown.down(options.name)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    with subprocess.Popen(command, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            raise


def _kueue(options: argparse.Namespace) -> None:
    kueue.install(Cluster.open(options.name), feature_gates=options.feature_gates)


def _down(options: argparse.Namespace) -> None:
    teardown.down(options.name)


def _build(options: argparse.Namespace) -> None:
    packages.require(install=options.install)
    programs = builds.build_all(versions.parse(options.kubernetes))
    neighbours = [builds.build(module) for module in (versions.helm(), versions.kueue())]
    print(*(programs.kubernetes, programs.etcd, programs.containerd, *neighbours), sep="\n")


def _module(options: argparse.Namespace) -> None:
    print(modfiles.write(versions.parse(options.kubernetes)))


def _kubectl(options: argparse.Namespace) -> None:
    cluster = Cluster.open(options.name)
    kubectl = cluster.state.programs["kubectl"]
    sys.stdout.flush()
    os.execve(kubectl, [kubectl, *options.arguments], cluster.environment())  # noqa: S606


def _kubeconfig(options: argparse.Namespace) -> None:
    print(Cluster.open(options.name).state.kubeconfigs[ADMIN])


def _logs(options: argparse.Namespace) -> None:
    found = Cluster.open(options.name).state.processes
    if options.component is None:
        for name, process in found.items():
            print(f"==> {name} ({process.log})\n{processes.tail(process.log, 5)}\n")
    elif options.component in found:
        print(processes.tail(found[options.component].log, options.lines))
    else:
        raise ClusterError(f"no component {options.component!r}; there are: {', '.join(found)}")


def _status(options: argparse.Namespace) -> None:
    cluster = Cluster.open(options.name)
    state, running = cluster.state, cluster.running()
    if options.json:
        print(json.dumps({"state_file": str(cluster.state_file), "running": running}))
        return
    print(f"cluster {state.name}: Kubernetes {state.kubernetes}, {state.api_url}")
    print(f"state   {cluster.state_file}")
    for name, alive in running.items():
        print(f"  {name:<26} {state.processes[name].pid if alive else 'not running'}")
    if not all(running.values()):
        raise ClusterError("not everything runs; `hack/cluster up` starts what is missing")


def _start(options: argparse.Namespace) -> None:
    Cluster.open(options.name).start(options.component)


def _stop(options: argparse.Namespace) -> None:
    Cluster.open(options.name).stop(options.component)


def _restart(options: argparse.Namespace) -> None:
    Cluster.open(options.name).restart(options.component)


def _start_kubelet(options: argparse.Namespace) -> None:
    Cluster.open(options.name).start_kubelet(options.node)


def _stop_kubelet(options: argparse.Namespace) -> None:
    Cluster.open(options.name).stop_kubelet(options.node)


def _restart_kubelet(options: argparse.Namespace) -> None:
    Cluster.open(options.name).restart_kubelet(options.node)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/cluster", description=__doc__)
    parser.add_argument("--name", default=default_name(), help="default: one name per checkout")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = argparse.ArgumentParser(add_help=False)
    # Also after the command; SUPPRESS, or its default would overwrite what stood before it.
    named.add_argument("--name", default=argparse.SUPPRESS, help="default: one name per checkout")

    def add(name: str, run: _Work) -> argparse.ArgumentParser:
        command = commands.add_parser(name, parents=[named], help=_HELP[name])
        command.set_defaults(run=run)
        return command

    _add_making(add)
    add("down", _down)
    add("kueue", _kueue).add_argument("--feature-gates", default="", metavar="GATE=true,...")
    add("kubectl", _kubectl)
    add("kubeconfig", _kubeconfig)
    logs = add("logs", _logs)
    logs.add_argument("component", nargs="?")
    logs.add_argument("--lines", type=int, default=200)
    add("status", _status).add_argument("--json", action="store_true")
    for name, run in (("start", _start), ("stop", _stop), ("restart", _restart)):
        add(name, run).add_argument("component")
    for name, run in (
        ("start-kubelet", _start_kubelet),
        ("stop-kubelet", _stop_kubelet),
        ("restart-kubelet", _restart_kubelet),
    ):
        add(name, run).add_argument("node")
    return parser


_Add = Callable[[str, _Work], argparse.ArgumentParser]


def _add_making(add: _Add) -> None:
    """The commands that build."""
    up, during = add("up", _up), add("with", _with)
    build, module = add("build", _build), add("module", _module)
    for command in (up, during, build):
        command.add_argument("--kubernetes", default=versions.DEFAULT_KUBERNETES, metavar="X.Y.Z")
        command.add_argument(
            "--install", action="store_true", help="install missing Debian packages"
        )
    module.add_argument("--kubernetes", required=True, metavar="X.Y.Z")
    for command in (up, during):
        command.add_argument("--nodes", type=int, default=1, metavar="N")
        command.add_argument(
            "--scale", action="store_true", help="no client limits, no node timeouts"
        )
        command.add_argument("--feature-gates", default="", metavar="GATE=true,...")
        command.add_argument("--runtime-config", default="", metavar="GROUP/VERSION=true,...")
        command.add_argument(
            "--usual-paths", action="store_true", help="for plugins that run as pods"
        )


_HELP = {
    "up": "start a cluster, or what is missing of it; print the state file",
    "with": "a fresh cluster for as long as a command runs: with [OPTIONS] -- COMMAND ...",
    "kueue": "put Kueue into a running cluster",
    "down": "stop a cluster and remove all of it",
    "build": "build the programs only, Helm and Kueue too",
    "module": "write the go.mod of another Kubernetes version",
    "kubectl": "run kubectl against the cluster",
    "kubeconfig": "print the path of the administrator's kubeconfig",
    "logs": "the end of the logs, of all components or of one",
    "status": "what runs",
    "start": "start one component",
    "stop": "stop one component",
    "restart": "restart one component",
    "start-kubelet": "start a node's kubelet and wait until it serves",
    "stop-kubelet": "stop a node's kubelet",
    "restart-kubelet": "restart a node's kubelet and wait until it serves",
}
