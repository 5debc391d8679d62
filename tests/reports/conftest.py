# SPDX-License-Identifier: Apache-2.0
"""The browser that every test of a page shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.reports.browser import chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium; it ends with this folder's tests, because an event loop of its own runs meanwhile."""
    with chromium() as browser:
        yield browser
