"""Every manifest, value and setting in the pages is checked; a block of no known kind is a failure."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dragoon.app import config
from dragoon.diagnose.documents import read_text
from dragoon.diagnose.linting import lint
from dragoon.diagnose.manifests import Manifests
from tests.docs import objects
from tests.docs.blocks import EVERY_PAGE, PAGES, ROOT, Block, blocks, blocks_of

_KINDS: Final = frozenset(
    (
        *("console", "console cluster", "sh", "json", "text"),
        *("yaml", "yaml shape", "yaml values", "yaml settings"),
    )
)
_SPECIAL: Final = re.compile(r"yaml ((file|part)=docs/manifests/\S+\.yaml|DRG\d{3}( DRG\d{3})*)")
_LINK: Final = re.compile(r"\]\((?!https?:)([^)\s\[\]{}]+)\)")
_HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _each(found: list[Block]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", found, ids=lambda one: one.where)


def _words(block: Block) -> str:
    return " ".join(block.kind)


def _codes(block: Block) -> list[str]:
    return [word for word in block.kind[1:] if word.startswith("DRG")]


def _file(block: Block, how: str) -> Path:
    """The file that a block shows as a whole or in part; the root where it shows none."""
    names = [word.removeprefix(f"{how}=") for word in block.kind if word.startswith(f"{how}=")]
    return ROOT.joinpath(*names)


def _linted(*objects_: Any) -> list[str]:
    text = yaml.safe_dump_all(objects_)
    found = lint(Manifests.of(read_text("page", text)))
    return [f"{one.code} {one.path}: {one.found}" for one in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    unknown = [
        f"{one.where}: {_words(one) or 'nothing'}"
        for one in blocks_of(page)
        if _words(one) not in _KINDS and not _SPECIAL.fullmatch(_words(one))
    ]
    assert unknown == [], "tests/docs/blocks.py has the kinds"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_code_hides_in_an_indented_block(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    hidden = re.findall(r"(?:^|\n)\n {4,}(?![-*\d ])(.+)", text)
    assert hidden == [], "fence it, and say what it is"


@_each([one for one in blocks() if one.kind == ("text",)])
def test_text_is_no_command(block: Block) -> None:
    assert not [line for line in block.text.splitlines() if line.startswith("$ ")]


@_each(objects.plain())
def test_objects_have_nothing_that_lint_finds(block: Block) -> None:
    assert objects.documents(block)
    assert _linted(*objects.documents(block)) == []


@_each([one for one in blocks() if one.language == "yaml" and _codes(one)])
def test_mistakes_are_found_by_the_checks_that_the_page_names(block: Block) -> None:
    found = {line.split()[0] for line in _linted(*objects.documents(block))}
    assert found == set(_codes(block))


@_each([one for one in blocks() if _file(one, "file") != ROOT])
def test_a_file_in_a_page_is_the_file(block: Block) -> None:
    assert block.text == _file(block, "file").read_text("utf-8")


@_each([one for one in blocks() if _file(one, "part") != ROOT])
def test_a_part_of_a_file_in_a_page_is_as_in_the_file(block: Block) -> None:
    whole = list(yaml.safe_load_all(_file(block, "part").read_text("utf-8")))
    assert all(one in whole for one in objects.documents(block))


def test_every_manifest_file_is_shown_somewhere() -> None:
    shown = {_file(one, "file") for one in blocks()}
    assert set((ROOT / "docs/manifests").iterdir()) <= shown


@_each(objects.of("yaml shape"))
def test_objects_of_other_projects_hold_pods_and_claims_that_are_right(block: Block) -> None:
    foreign = [one for one in objects.documents(block) if one not in objects.known(block)]
    assert foreign, "all of these are known: it is a block of kind yaml"
    assert all(one["apiVersion"] and one["kind"] and one["metadata"]["name"] for one in foreign)
    assert objects.known(block), "nothing in it can be checked: it is a block of kind text"
    assert _linted(*objects.known(block)) == []


@_each(objects.of("yaml values"))
def test_values_are_those_of_the_chart(block: Block, tmp_path: Path) -> None:
    schema = json.loads((ROOT / "charts/dragoon/values.schema.json").read_text("utf-8"))
    (values,) = objects.documents(block)
    assert list(_unknown(values, schema)) == []
    plugin = values.get("config", {})
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(plugin))
    config.load({}, {}, file=str(file))


@_each(objects.of("yaml settings"))
def test_settings_are_taken_by_the_plugin(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(block.text)
    config.load({}, {}, file=str(file))


@_each([one for one in blocks() if one.kind == ("json",)])
def test_data_is_data(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(page.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_docs_stands_in_their_index() -> None:
    listed = set(_LINK.findall((ROOT / "docs/README.md").read_text("utf-8")))
    pages = {one.name for one in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages - listed == set()


def _unknown(values: Any, schema: Any) -> Any:
    """Names in values that the schema does not have."""
    known = schema.get("properties", {})
    for name, value in values.items():
        if name in known and isinstance(value, dict) and "properties" in known[name]:
            yield from _unknown(value, known[name])
        elif name not in known and schema.get("additionalProperties") is False:
            yield name


def _anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get."""
    headings = _HEADING.findall(page.read_text("utf-8"))
    bare = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.replace(" ", "-") for text in bare}
