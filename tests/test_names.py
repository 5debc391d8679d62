# SPDX-License-Identifier: Apache-2.0
"""A test has one name, whichever process collects it and when. A class has one, too."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# pyserial asks each handler for a Serial. The others are a report's or a product's own, and of its field.
SHARED = {"Serial", "Comparison", "Estimate", "Finding", "Line", "Row", "Run", "Source", "Table"}

# how pytest writes the beginnings of what gzip and zip make, which hold the second they were made at
PACKED = (r"\x1f\x8b", r"PK\x03\x04")


def test_what_is_packed_gives_no_name(request: pytest.FixtureRequest) -> None:
    """No name holds packed bytes, but an id of its own: xdist ends a whole session where two workers, which
    collect at their own second, come to different names."""
    names = [item.nodeid for item in request.session.items]
    assert [name for name in names if any(start in name for start in PACKED)] == []


def test_a_class_has_a_name_of_its_own() -> None:
    """No two public classes of hil, reports and fixtures are called alike."""
    places = defaultdict(set)
    for path in (path for room in ("hil", "reports", "fixtures") for path in (ROOT / room).rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            places[name].add(path.resolve().relative_to(ROOT).as_posix())
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in SHARED} == {}
