"""A browser for tests: Chromium through its driver, spoken to over HTTP (W3C WebDriver)."""

import json
import shutil
import subprocess
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_START_S: Final = 60
_CALL_S: Final = 120
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
_HEARD: Final = """
const heard = arguments[0];
const last = document.createElement("details");
last.addEventListener("toggle", () => heard());
last.open = true;
"""
PROGRAMS: Final = ("chromium", "chromedriver")


def missing() -> list[str]:
    """The programs that are not installed (Debian: chromium, chromium-driver)."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Browser:
    """One window."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, path: Path) -> None:
        """Opens a file."""
        self._call("POST", "/url", {"url": path.as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns in the page, as plain data."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def type(self, selector: str, text: str) -> None:
        """Types into an element, key by key."""
        self._settle()
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[_ELEMENT]}/value", {"text": text})

    def click(self, selector: str) -> None:
        """Clicks the first element of a selector, as a person would: it must be visible."""
        self._settle()
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[_ELEMENT]}/click", {})

    def texts(self, selector: str) -> list[str]:
        """The text of every element of a selector."""
        self._settle()
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)",
            selector,
        )
        return found

    def count(self, selector: str) -> int:
        """How many elements a selector finds."""
        self._settle()
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def resize(self, width: int, height: int) -> None:
        """The size of the window, pixels."""
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def complaints(self) -> list[str]:
        """What the browser wrote to its console since the last call: errors and refused requests."""
        return [one["message"] for one in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The addresses of everything that was fetched since the last call, the page itself too."""
        events = self._call("POST", "/se/log", {"type": "performance"})
        messages = (json.loads(one["message"])["message"] for one in events)
        return [
            one["params"]["request"]["url"]
            for one in messages
            if one["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path: Path) -> None:
        """Writes what the window shows, as PNG."""
        path.write_bytes(b64decode(self._call("GET", "/screenshot")))

    def _settle(self) -> None:
        """Returns when the page has heard of everything that was opened or closed until now.

        After a click or a key Chromium tells of that late, after what is asked of the page next.
        """
        self._call("POST", "/execute/async", {"script": _HEARD, "args": []})

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return _call(method, self._session + path, body)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A window that is closed afterwards. folder: for its profile and the driver's log."""
    log = folder / "chromedriver.log"
    with log.open("w") as output:
        driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=output, text=True
        )
    try:
        yield from _window(driver, folder)
    finally:
        driver.terminate()
        driver.wait(_START_S)
        assert driver.stdout is not None
        driver.stdout.close()


def _window(driver: "subprocess.Popen[str]", folder: Path) -> Iterator[Browser]:
    assert driver.stdout is not None
    # "... was started successfully on port N."
    line = next(one for one in driver.stdout if "successfully on port" in one)
    server = f"http://127.0.0.1:{line.rstrip().rstrip('.').rsplit(' ', 1)[1]}"
    options = {
        "binary": shutil.which("chromium"),
        # No sandbox: as root Chromium has none. The pages are our own.
        "args": [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", f"--user-data-dir={folder / 'profile'}", "--window-size=1440,900"),
        ],
    }
    wanted = {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    made = _call("POST", f"{server}/session", {"capabilities": {"alwaysMatch": wanted}})
    session = f"{server}/session/{made['sessionId']}"
    try:
        yield Browser(session)
    finally:
        _call("DELETE", session)


def _call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own driver on this machine
        url, data=data, method=method, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=_CALL_S) as answer:  # noqa: S310 - see above
        return json.load(answer)["value"]
