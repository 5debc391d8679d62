# SPDX-License-Identifier: Apache-2.0
"""A test has one name, whichever process collects it and when."""

from __future__ import annotations

import pytest

# how pytest writes the beginnings of what gzip and zip make, which hold the second they were made at
PACKED = (r"\x1f\x8b", r"PK\x03\x04")


def test_what_is_packed_gives_no_name(request: pytest.FixtureRequest) -> None:
    """No name holds packed bytes, but an id of its own: xdist ends a whole session where two workers, which
    collect at their own second, come to different names."""
    names = [item.nodeid for item in request.session.items]
    assert [name for name in names if any(start in name for start in PACKED)] == []
