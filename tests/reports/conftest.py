# SPDX-License-Identifier: Apache-2.0
"""The browser that a module's tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.reports.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium a module: an event loop of its own runs until it ends, and other tests start theirs."""
    with chromium() as browser:
        yield browser
