"""docs/gang-sources.md has every source."""

from pathlib import Path

from dragoon.gang.discovering.reference import reference
from dragoon.gang.discovering.table import JOB, SOURCES

PAGE = Path(__file__).parents[4] / "docs" / "gang-sources.md"


def test_the_page_is_the_one_that_the_table_makes() -> None:
    assert PAGE.read_text() == reference(), (
        "run: dragoon reference gang-sources > docs/gang-sources.md"
    )


def test_every_source_has_a_line_with_as_many_cells_as_the_head() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(SOURCES) + 1
    assert {row.count(" | ") for row in rows} == {7}
    for source in (*SOURCES, JOB):
        assert sum(row.startswith(f"| **{source.name}** |") for row in rows) == 1
