"""Races gangs with controllers that die, on a real control plane."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from dragoon.api.names import CLASS_SIMULATED
from dragoon.kube.connecting import connect
from racecampaign.campaign import Run
from racecampaign.hands import Hands
from racecampaign.reaching import Reach
from racecampaign.standin import StandIn
from racecampaign.witness import Witness
from realcluster.cluster import Cluster
from testbed import controller
from testbed.fleet import Fleet, control_plane, slices_of

_CLASS_FILE: Final = (
    Path(__file__).resolve().parents[2] / "deviceclasses" / f"{CLASS_SIMULATED}.yaml"
)
_MACHINE, _GPUS = "dgx-h100", 8


def options(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--seed", type=int, default=None, help="the same races again, nearly")
    parser.add_argument("--runs", type=int, default=20, help="races, one after the other")
    parser.add_argument("--nodes", type=int, default=6, help="of the cluster, simulated")
    parser.add_argument("--name", default="race", help="name of the cluster")
    parser.add_argument("--keep", type=Path, help="a folder for the histories of violations")


def run(chosen: argparse.Namespace) -> int:
    """The campaign; 1 if anything was violated."""
    seed = chosen.seed if chosen.seed is not None else time.time_ns() % 1_000_000
    print(f"seed {seed}", flush=True)
    with (
        control_plane(chosen.name) as state,
        tempfile.TemporaryDirectory(prefix="dragoon-race-") as folder,
    ):
        controller.install(Cluster.open(chosen.name))
        kubeconfig = Path(state.kubeconfigs["admin"])
        rng = random.Random(seed)  # noqa: S311 - the same races again, not a secret
        wrong = asyncio.run(_races(chosen, kubeconfig, Path(folder), rng))
    print(f"runs {chosen.runs}, violations {wrong}", flush=True)
    return 1 if wrong else 0


async def _races(
    chosen: argparse.Namespace, kubeconfig: Path, folder: Path, rng: random.Random
) -> int:
    client = await connect(kubeconfig)
    fleet = await Fleet.connect(kubeconfig)
    names = [f"node-{index:05d}" for index in range(chosen.nodes)]
    await fleet.prepare(names, slices_of(names, _MACHINE))
    reach = Reach.of(kubeconfig)
    hands, witness = Hands(kubeconfig, folder, rng), Witness(client)
    wrong = 0
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = [
                tasks.create_task(witness.run()),
                tasks.create_task(StandIn(client, reach, rng).run()),
            ]
            await hands.start()
            for number in range(chosen.runs):
                one = Run(
                    client,
                    reach,
                    hands,
                    witness,
                    rng,
                    name=f"race-{number}",
                    number=number,
                    fleet=fleet,
                    nodes=names,
                    room=chosen.nodes * _GPUS,
                    keep=chosen.keep,
                )
                found = await one.run(_say)
                for problem in found:
                    _say(f"VIOLATION: {problem}")
                wrong += len(found)
            for task in watching:
                task.cancel()
    finally:
        await hands.stop()
        await fleet.close()
        await client.close()
    _say(
        f"controllers killed {hands.kills} times, {hands.failed} writes failed, "
        f"{witness.overlaps} devices were held twice for a while"
    )
    return wrong


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()
