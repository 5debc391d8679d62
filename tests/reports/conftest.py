# SPDX-License-Identifier: Apache-2.0
"""The browser that a module's tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.reports.browser import Visit, chromium, visit


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium a module: an event loop of its own runs until it ends, and other tests start theirs."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Visit]:
    """A page that tests use one after another: a new one for each costs as much again as what it loads."""
    with visit(browser, "about:blank") as tab:
        yield tab
