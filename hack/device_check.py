"""Prints the GPUs of this machine as a topology file (`case-topology/1`); see hack/device-check.

What the cards answer about their health goes to stderr: it is of today, and not of the machine.
"""

import argparse
import signal
import sys

from dragoon.errors import DragoonError, DriverMissingError
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.pci import node_cpus
from dragoon.gpu.sim.describing import Extras, describe

_LONGEST = 180  # seconds
_NO_GPU = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/device-check", description=__doc__)
    parser.add_argument("--simulate", metavar="NAME", help="a shipped machine or a topology file")
    parser.add_argument("--name", default="this-machine", help="name to write into the file")
    options = parser.parse_args()
    # The default action ends the process even while it hangs in a call of the driver.
    signal.alarm(_LONGEST)
    try:
        gpus = open_gpus(options.simulate, beside_driver=True)
        try:
            text = report(gpus, options.name)
            said = health(gpus) if text else ()
        finally:
            gpus.close()
    except DriverMissingError as error:
        print(f"no GPU here: {error}", file=sys.stderr)
        return _NO_GPU
    except DragoonError as error:
        print(error, file=sys.stderr)
        return 1
    if text is None:
        print("no GPU here: the driver lists none", file=sys.stderr)
        return _NO_GPU
    print(*said, sep="\n", file=sys.stderr)
    print(text, end="")
    return 0


def report(gpus: NvmlGpus, name: str) -> str | None:
    """The topology file of the machine; None when there is no GPU that answers."""
    survey = gpus.survey()
    inventory = survey.inventory
    if not inventory.gpus:
        return None
    nodes = {gpu.numa_node for gpu in inventory.gpus if gpu.numa_node is not None}
    extras = Extras(
        mig_profiles=survey.mig_profiles,
        mig_instances=survey.mig_instances,
        memory_nodes=survey.memory_nodes,
        node_cpus={node: node_cpus(gpus.roots, node) for node in nodes},
        symbols=survey.symbols,
    )
    return describe(name, inventory, extras)


def health(gpus: NvmlGpus) -> list[str]:
    """What each card answers about its health, and whether it reports events."""
    unwatched = gpus.events.poll().unwatched
    return [
        f"{address}: {condition}, events: {unwatched.get(address, 'reported')}"
        for address, condition in gpus.conditions().items()
    ]


if __name__ == "__main__":
    sys.exit(main())
