"""What holds for all tests."""

from hypothesis import settings

# Hypothesis' own profile for CI, everywhere: the same examples in every run, and no limit on the
# time of one, which a busy machine exceeds. `--hypothesis-profile default` looks for new ones.
settings.load_profile("ci")
