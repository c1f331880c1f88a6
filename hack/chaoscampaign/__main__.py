"""The command line of `hack/chaos`: of a node, where no campaign is named."""

import argparse
import sys

from chaoscampaign import node_main
from racecampaign import main as gang_main

_CAMPAIGNS = {"node": node_main, "gang": gang_main}


def main() -> int:
    """Runs one campaign; answers the exit code."""
    parser = argparse.ArgumentParser(prog="hack/chaos", description=__doc__)
    campaigns = parser.add_subparsers(metavar="CAMPAIGN", required=True)
    for name, campaign in _CAMPAIGNS.items():
        said = campaign.__doc__
        one = campaigns.add_parser(name, help=said, description=said)
        campaign.options(one)
        one.set_defaults(run=campaign.run)
    arguments = sys.argv[1:]
    if not arguments or (arguments[0] not in {"-h", "--help"} and arguments[0].startswith("-")):
        arguments.insert(0, "node")
    try:
        chosen = parser.parse_args(arguments)
        return int(chosen.run(chosen))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
