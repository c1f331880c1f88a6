"""Text of other people never moves a cursor, starts a line or turns around."""

import pytest

from dragoon.api.visible import one_line, typed, visible


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain text, für alle 日本", "plain text, für alle 日本"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("a\nb\r\tc", "a\ufffdb\ufffd\ufffdc"),
        ("left\u202eright\u200b", "left\ufffdright\ufffd"),
        ("\ud800", "\ufffd"),
        ("\x9b2J", "\ufffd2J"),
    ],
)
def test_what_a_reader_would_obey_becomes_visible(written: str, seen: str) -> None:
    assert visible(written) == seen


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("    indented", "    indented"),
        ("a &&\n  b", "a &&   b"),
        ("a\r\n\u2028b", "a b"),
        ("a\n\x1b]0;title\x07", "a \ufffd]0;title\ufffd"),
    ],
)
def test_several_lines_become_one(written: str, seen: str) -> None:
    assert one_line(written) == seen


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("dragoon explain pod/a -n team", "dragoon explain pod/a -n team"),
        ("kubectl get pods -l a.io/b=c", "kubectl get pods -l a.io/b=c"),
        ("kubectl delete pod x; rm -rf ~", "kubectl delete pod 'x;' rm -rf '~'"),
        ("dragoon status node/$(id)", "dragoon status 'node/$(id)'"),
        ("dragoon status node/a\nid", "dragoon status node/a id"),
        (("dragoon", "lint", "-f", "my file"), "dragoon lint -f 'my file'"),
    ],
)
def test_a_command_to_type_starts_nothing_that_a_name_says(
    command: str | tuple[str, ...], shown: str
) -> None:
    assert typed(command) == shown
