"""The command line of `hack/chaos`: a node if nothing else is named."""

import argparse
import sys

from chaoscampaign import node_main
from racecampaign import main as gang_main

_CAMPAIGNS = {"node": node_main, "gang": gang_main}


def main() -> int:
    """Runs one campaign; answers the exit code."""
    arguments = sys.argv[1:]
    name = arguments.pop(0) if arguments and arguments[0] in _CAMPAIGNS else "node"
    campaign = _CAMPAIGNS[name]
    parser = argparse.ArgumentParser(prog=f"hack/chaos [{name}]", description=campaign.__doc__)
    campaign.options(parser)
    try:
        chosen = parser.parse_args(arguments)
        return int(campaign.run(chosen))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
