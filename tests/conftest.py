"""What holds for all tests."""

import pytest
from hypothesis import settings

from tests import lateness

# Hypothesis' own profile for CI, everywhere: the same examples in every run, and no limit on the
# time of one, which a busy machine exceeds. `--hypothesis-profile default` looks for new ones.
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--late",
        type=float,
        metavar="SECONDS",
        help="threads' answers reach their loops this late, to find tests that ask too early",
    )


def pytest_configure(config: pytest.Config) -> None:
    if seconds := config.getoption("late"):
        lateness.install(seconds)
