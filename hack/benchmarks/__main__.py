"""The command line of `hack/bench`."""

import argparse
import sys

from benchmarks import allocator, binding, cli, gang, gang_plan, packing, prepare, publish
from realcluster.failure import ClusterError


def main() -> int:
    """Runs one benchmark; answers the exit code."""
    parser = argparse.ArgumentParser(prog="hack/bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="BENCHMARK")
    for module in (allocator, binding, cli, gang, gang_plan, packing, prepare, publish):
        command = commands.add_parser(
            module.__name__.rpartition(".")[2].replace("_", "-"),
            help=(module.__doc__ or "").partition("\n")[0],
        )
        module.options(command)
        command.set_defaults(run=module.run)
    chosen = parser.parse_args()
    try:
        chosen.run(chosen)
    except ClusterError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
