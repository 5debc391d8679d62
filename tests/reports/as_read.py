# SPDX-License-Identifier: Apache-2.0
"""A page of Markdown as a person reads it: what keeps foreign words in their place is not seen."""

from __future__ import annotations

import html

from hil.base.untrusted import ZERO_WIDTH_SPACE


def as_read(page: str) -> str:
    """Return a page without entities and zero-width spaces."""
    return html.unescape(page).replace(ZERO_WIDTH_SPACE, "")
