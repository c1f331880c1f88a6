"""The map in a real browser: readable at 8 and at 8,000 GPUs, and nobody's text is run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoon.diagnose.mapping import draw, page
from dragoon.diagnose.snapshot import ClusterSnapshot
from tests.browser.webdriver import Browser
from tests.unit.diagnose.fleet import RACK, fleet, hostile

pytestmark = pytest.mark.timeout(600)

Show = Callable[[ClusterSnapshot], None]
_LONGEST = 2_000_000
"""Bytes of a page of 8,000 GPUs."""


@pytest.fixture
def show(window: Browser, tmp_path: Path) -> Show:
    """Opens the map of a snapshot; the browser finds nothing wrong with it and fetches nothing."""

    def opened(snapshot: ClusterSnapshot) -> None:
        path = tmp_path / "map.html"
        path.write_text(page(draw(snapshot)), encoding="utf-8")
        window.requests()
        window.complaints()
        window.resize(1440, 900)
        window.open(path)
        assert window.complaints() == []
        # Chromium's own pages and placeholders; what is in an address itself is fetched from nowhere.
        own = ("chrome:", "data:")
        fetched = [one for one in window.requests() if not one.startswith(own)]
        assert fetched == [path.as_uri()]

    return opened


def _shown_cards(window: Browser) -> dict[str, int]:
    """How many of the GPUs on the page are in each state."""
    states = ("whole", "shared", "mig", "free", "unusable")
    return {state: window.count(f".card.{state}") for state in states}


def test_eight_gpus_are_drawn_with_who_holds_them(window: Browser, show: Show) -> None:
    show(fleet(1))
    assert _shown_cards(window) == {"whole": 1, "shared": 1, "mig": 1, "free": 5, "unusable": 0}
    assert window.texts("#summary") == ["1 node, 8 GPUs, 5 free"]
    (shared,) = window.texts(".card.shared")
    assert "0000:13:00.0" in shared
    assert "NVIDIA H100 80GB HBM3" in shared
    assert "part-a and 1 more" in shared
    fill = window.run("return document.querySelector('.card.shared .fill').style.width")
    assert fill == "40%"  # 20 and 12 of 79.6 GiB
    assert window.count(".domain .card") == 8


def test_a_click_on_a_gpu_tells_everything_about_it(window: Browser, show: Show) -> None:
    show(fleet(1))
    window.click(".card.shared")
    (detail,) = window.texts("#detail")
    for told in ("gpu-0000", "team-a/part-a-gpu", "part-b", "12.0 GiB", "held in shares, 40 %"):
        assert told in detail


def test_a_gang_that_waits_says_why_as_explain_does(window: Browser, show: Show) -> None:
    show(fleet(2, forms=1))
    first, second = window.texts("#gangs .gang")
    assert first.startswith("team-a/large Waiting 0/18")
    assert "members fit; team-a/large-" in first
    assert "What would help: " in first
    assert "why, line by line" in first
    assert second == "team-a/train Running 16/16"
    assert window.texts("#waiting code") == ["dragoon explain pod/notebook -n research"]


def test_a_click_on_a_gang_finds_its_gpus(window: Browser, show: Show) -> None:
    show(fleet(2, forms=1))
    window.run("return document.querySelectorAll('#gangs .gang button')[1].click()")
    assert window.texts("#hits") == ["4 of 16 GPUs"]
    assert window.count(".card.whole:not(.miss)") == 4
    assert window.count(".node") == 1


def test_a_state_of_the_legend_filters(window: Browser, show: Show) -> None:
    show(fleet(3, forms=1))
    window.click("#legend .chip:nth-child(5)")
    assert window.texts("#hits") == ["1 of 24 GPUs"]
    assert window.count(".card.unusable.tainted:not(.miss)") == 1
    window.click("#legend .chip:nth-child(5)")
    assert window.texts("#hits") == [""]


def test_eight_thousand_gpus_are_folded_into_racks_and_found_by_name(
    window: Browser, show: Show, tmp_path: Path
) -> None:
    show(fleet(1000, forms=1))
    assert (tmp_path / "map.html").stat().st_size < _LONGEST
    assert window.run("return document.getElementById('group').value") == RACK
    assert window.texts(".group .name")[:2] == ["rack-0", "rack-1"]
    assert window.count(".card") == 0  # drawn when a rack is opened
    window.click(".group summary")
    assert window.count(".card") == 32 * 8
    window.type("#search", "train-50")
    assert window.texts(".figures") == [
        "32 nodes · 128 of 256 GPUs free · 4 match",
        "32 nodes · 128 of 256 GPUs free · 40 match",
    ]
    window.type("#search", "7-2")
    assert window.texts("#hits") == ["1 of 8000 GPUs"]
    assert window.texts(".node h3") == ["gpu-0507"]
    assert window.count(".card.whole:not(.miss)") == 1


def test_a_narrow_window_shows_it_without_scrolling_sideways(window: Browser, show: Show) -> None:
    show(fleet(2, forms=1))
    window.resize(520, 900)
    assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")


def test_light_and_dark_are_different(window: Browser, show: Show) -> None:
    show(fleet(1))
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = window.run(colour)
    window.click("#theme")
    assert window.run(colour) != before


def test_text_from_users_is_text(window: Browser, show: Show) -> None:
    """A snapshot is a file: whoever wrote it can have written anything anywhere."""
    show(hostile("</script><script>window.taken = 1</script><img src=x onerror='taken = 1'>"))
    assert window.run("return typeof window.taken") == "undefined"
    assert window.count("img") == 0
    assert window.count("script") == 2  # the data and our own
    assert any("<img src=x" in one for one in window.texts("#gangs"))
    window.click(".card")
    assert "<script>" in window.texts("#detail")[0]
    assert window.complaints() == []


def test_a_script_that_is_not_ours_is_refused_by_the_page_itself(
    window: Browser, show: Show
) -> None:
    show(fleet(1))
    window.run(
        "const one = document.createElement('script'); one.textContent = 'window.taken = 1';"
        "document.body.append(one)"
    )
    assert window.run("return typeof window.taken") == "undefined"
    assert any("Content Security Policy" in one for one in window.complaints())
