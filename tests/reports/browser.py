# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium: what a page shows, what it complains of, and what it asks of which host."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_MS = 60_000  # a host with two cores may have other tests, builds and racks on them
OWN_SCHEMES = ("file", "data", "blob", "about")


@dataclass
class Visit:
    """An open page; ``requests`` are the addresses it asked for, ``complaints`` its errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """Open an address as in a new page: also one that differs in its fragment alone is loaded."""
        self.page.goto("about:blank")
        self.page.emulate_media(color_scheme="light")
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(address)

    def show(self, text: str) -> None:
        """Wait until ``text`` is to be seen, wherever on the page; else say what is there instead."""
        try:
            self.page.get_by_text(text).locator("visible=true").first.wait_for(timeout=DEADLINE_MS)
        except PlaywrightError as error:
            there = self.page.inner_text("body")[:500]
            raise AssertionError(
                f"{text!r} is not to be seen on {self.page.url}: {there!r} {self.complaints}"
            ) from error

    def width(self) -> int:
        """Return how wide the page is, more than its window where it hangs out."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def assert_at_home(self, host: str = "") -> None:
        """Nothing was asked of another host, and the browser had nothing to complain of."""
        assert self.requests
        assert (self.foreign(host), self.complaints) == ([], [])

    def foreign(self, own_host: str = "") -> list[str]:
        """Return the requests that went to another host than ``own_host`` (host:port)."""
        parts = [(urlsplit(address), address) for address in self.requests]
        return [address for url, address in parts if url.scheme not in OWN_SCHEMES and url.netloc != own_host]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; it is gone again at the end."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def find_chromium() -> str:
    """Return the browser of this machine."""
    found = [path for name in NAMES if (path := shutil.which(name))]
    assert found, f"none of {', '.join(NAMES)} is on PATH; next: .ci/bootstrap test"
    return found[0]


@contextmanager
def visit(
    browser: Browser,
    address: str,
    *,
    width: int = 1280,
    height: int = 800,
    scheme: Literal["light", "dark"] = "light",
) -> Iterator[Visit]:
    """Open ``address`` in a context of its own."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    try:
        seen = Visit(context.new_page())
        context.set_default_timeout(DEADLINE_MS)
        context.on("request", lambda request: seen.requests.append(request.url))
        context.on("console", lambda message: _note(seen, message))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(address, timeout=DEADLINE_MS)
        yield seen
    finally:
        context.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback; yields host:port."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        pass


def channels(colour: str) -> tuple[float, ...]:
    """Return red, green and blue of "rgb(220, 38, 38)"."""
    return tuple(float(part) for part in colour.partition("(")[2].rstrip(")").split(",")[:3])


def _note(seen: Visit, message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        seen.complaints.append(message.text)
