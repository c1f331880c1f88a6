"""Files to documents: what cannot be read is named, and the rest is kept."""

from pathlib import Path

import pytest

from dragoon.diagnose.documents import Document, Origin, Unreadable, read_files, read_text, shown
from dragoon.errors import InvalidInputError


def contents(text: str) -> list[object]:
    return [one.content for one in read_text("f", text) if isinstance(one, Document)]


def test_a_file_of_several_documents_keeps_their_number_and_first_line() -> None:
    found = list(read_text("f.yaml", "# a comment\n---\na: 1\n---\n\n# more\n---\n\nb: 2\n"))
    assert [one.origin for one in found] == [Origin("f.yaml", 1, 3), Origin("f.yaml", 2, 9)]
    assert [one.content for one in found if isinstance(one, Document)] == [{"a": 1}, {"b": 2}]


def test_a_document_that_is_no_yaml_does_not_hide_the_others() -> None:
    first, second, third = read_text("f.yaml", "a: 1\n---\nb: [1,\nc: }\n---\nd: 4\n")
    assert isinstance(first, Document)
    assert isinstance(third, Document)
    assert isinstance(second, Unreadable)
    assert second.origin == Origin("f.yaml", 2, 3)
    assert "line" in second.problem


def test_a_key_that_is_there_twice_is_a_mistake() -> None:
    (found,) = read_text("f", "spec: 1\nkind: Pod\nspec: 2\n")
    assert isinstance(found, Unreadable)
    assert "'spec' is there twice" in found.problem


def test_a_date_is_text_as_in_kubernetes() -> None:
    assert contents("on: 2026-11-29") == [{True: "2026-11-29"}]


def test_a_separator_inside_a_text_block_is_text() -> None:
    assert contents("a: |\n  ---\n  b\n") == [{"a": "---\nb\n"}]


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "---\n---\n...\n", "%YAML 1.1\n"])
def test_nothing_is_no_document(text: str) -> None:
    assert list(read_text("f", text)) == []


def test_json_is_read_too_and_a_mistake_in_it_has_its_line() -> None:
    assert [type(one) for one in read_text("f.json", '{"a": [1, 2]}')] == [Document]
    (bad,) = read_text("f.json", '{"a": [1, 2}')
    assert isinstance(bad, Unreadable)


def test_nesting_without_end_is_a_problem_of_that_document() -> None:
    first, second = read_text("f", "[" * 100_000 + "\n---\na: 1\n")
    assert isinstance(first, Unreadable)
    assert isinstance(second, Document)


def test_json_nested_without_end_is_a_problem_of_that_document() -> None:
    (only,) = read_text("f.json", '{"a":' * 100_000)
    assert isinstance(only, Unreadable)


def test_a_folder_stands_for_its_yaml_and_json_files_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "d.txt"):
        (tmp_path / name).write_text("{}" if name == "c.json" else "a: 1")
    found = [Path(one.origin.file).name for one in read_files([tmp_path])]
    assert found == ["a.yml", "b.yaml", "c.json"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.yaml", None, "No such file"),
        ("x" * 300, None, "File name too long"),
        ("binary.yaml", b"\xff\xfe\x00", "no text in UTF-8"),
        ("large.yaml", b"a" * 101, "more than 0 MiB"),
    ],
)
def test_a_file_that_cannot_be_opened_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message) as caught:
        list(read_files([file], limit=100))
    assert str(file) in caught.value.message


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="found no file"):
        list(read_files([tmp_path]))


def test_a_value_in_a_message_is_short_however_large_it_is() -> None:
    bomb: list[object] = ["x"]
    for _ in range(40):
        bomb = [bomb] * 10
    assert len(shown(bomb)) < 2000
    assert len(shown("x" * 20_000)) < 2000
    assert shown("gpus") == "gpus"
