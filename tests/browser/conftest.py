"""The browser of the tests: skipped with one line where there is none, missed in CI."""

import os
from collections.abc import Iterator

import pytest

from tests.browser.webdriver import Browser, browser, missing


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    absent = missing()
    if absent:
        reason = f"no browser: {', '.join(absent)} not installed (Debian: chromium chromium-driver)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
