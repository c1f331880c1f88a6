"""Objects on the command line: as for kubectl."""

from pathlib import Path

import pytest
import yaml

from dragoon.cli import objects
from dragoon.cli.objects import CLAIM, GANG, NODE, POD, Named
from dragoon.errors import InvalidInputError

EVERY = (CLAIM, POD, GANG, NODE)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("pod/x", POD),
        ("po/x", POD),
        ("Pods/x", POD),
        ("claim/x", CLAIM),
        ("resourceclaims/x", CLAIM),
        ("gang/x", GANG),
        ("no/x", NODE),
        ("nodes/x", NODE),
    ],
)
def test_kinds_have_the_names_that_kubectl_gives_them(text: str, kind: str) -> None:
    assert objects.named(text, *EVERY) == Named(kind, "x")


@pytest.mark.parametrize("text", ["x", "job/x", "pod/", "/x", "pod/a/b", "node/x"])
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found '{text}', allowed is claim/NAME or pod/"):
        objects.named(text, CLAIM, POD)


def test_a_bare_name_is_taken_where_only_one_kind_can_be_meant() -> None:
    assert objects.named("x", GANG, bare=GANG) == Named(GANG, "x")


def test_the_namespace_is_the_given_one_or_that_of_the_context(tmp_path: Path) -> None:
    file = tmp_path / "c"
    context = {"name": "c", "context": {"namespace": "team-a"}}
    file.write_text(yaml.safe_dump({"current-context": "c", "contexts": [context]}))
    assert objects.namespace_of("given", file) == "given"
    assert objects.namespace_of(None, file) == "team-a"
    assert objects.namespace_of(None, file, snapshot=tmp_path) == "default"


@pytest.mark.parametrize(
    ("text", "namespace", "wanted"),
    [
        (None, None, None),
        ("x", None, "x"),
        ("claim/x", None, "x"),
        ("claim/x", "team-a", "team-a/x"),
        ("x", "team-a", "team-a/x"),
        ("team-a/x", None, "team-a/x"),
    ],
)
def test_claims_of_a_node_are_named_as_its_journal_names_them(
    text: str | None, namespace: str | None, wanted: str | None
) -> None:
    assert objects.local_claim(text, namespace) == wanted


def test_a_pod_is_no_claim_of_a_node() -> None:
    with pytest.raises(InvalidInputError, match="allowed is claim/NAME"):
        objects.local_claim("pod/x", None)
