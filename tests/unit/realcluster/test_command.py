"""What follows `kubectl` or `--` is not for `hack/cluster`."""

from collections.abc import Sequence

import pytest

from realcluster.command import divided


@pytest.mark.parametrize(
    ("given", "ours", "theirs"),
    [
        ("up --nodes 2", "up --nodes 2", ""),
        ("--name a kubectl get --name b", "--name a kubectl", "get --name b"),
        ("kubectl exec p -- ls --name", "kubectl", "exec p -- ls --name"),
        ("--name a with --nodes 0 -- kubectl -- x", "--name a with --nodes 0", "kubectl -- x"),
    ],
)
def test_what_is_for_another_program_is_left_to_it(given: str, ours: str, theirs: str) -> None:
    found: tuple[Sequence[str], Sequence[str]] = divided(given.split())
    assert [list(part) for part in found] == [ours.split(), theirs.split()]
