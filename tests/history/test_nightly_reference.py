# SPDX-License-Identifier: Apache-2.0
"""The reference firmware of nights: which commit, in which nights, and renewals that overlap."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.history.nightly.reference import REFERENCE, load_references, tonight
from tests.lab import ROOT

A, B, C = "a" * 40, "b" * 40, "c" * 40
THIRD = f"  - {{commit: {C}, since: 2026-03-10, why: again}}"  # a night has time for two
BOTH = f"""\
schema: 1
references:
  - {{commit: {A}, since: 2026-01-01, until: 2026-03-14, why: first}}
  - {{commit: {B}, since: 2026-03-01, why: release 0.2}}
"""


def folder(tmp_path: Path, text: str) -> Path:
    path = tmp_path / REFERENCE
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("night", "commits"),
    [
        ("2025-12-31", []),
        ("2026-01-01", [A]),
        ("2026-03-01", [A, B]),
        ("2026-03-14", [A, B]),
        ("2026-03-15", [B]),
    ],
)
def test_which_references_a_night_measures(tmp_path: Path, night: str, commits: list[str]) -> None:
    """One, two while a renewal overlaps, none before the first; both ends are included."""
    found = load_references(folder(tmp_path, BOTH))
    assert [one.commit for one in found.of(datetime.date.fromisoformat(night))] == commits


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (f"commit: {A}", "commit: v0.2", 3, "git rev-parse v0.2"),
        ("since: 2026-01-01", "since: 2026-04-01", 3, "is before since"),
        ("since: 2026-03-01", "since: 2025-03-01", 4, "is not after"),
        (", until: 2026-03-14", "", 3, "has no end"),
        ("why: first", "reason: first", 3, "why"),
        ("schema: 1", "schema: 2", 1, "schema"),
        (", why: release", ", colour: red, why: release", 4, "unknown key 'colour'"),
        ("since: 2026-03-01", "since: today", 4, "a day such as"),
        ("why: release 0.2}", f"until: 2026-03-30, why: b}}\n{THIRD}", 5, "3 references would be"),
    ],
)
def test_a_wrong_file(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    """Exit 2 with file, line and the way out."""
    assert old in BOTH
    with pytest.raises(ConfigError, match=words) as caught:
        load_references(folder(tmp_path, BOTH.replace(old, new)))
    assert "reference.yaml:" in str(caught.value)
    assert str(line) in str(caught.value) or "has no end" in words


def test_a_night_has_the_date_of_its_evening() -> None:
    """From noon to noon UTC, so that what starts after midnight is still the evening's night."""
    at = datetime.datetime.fromisoformat
    assert tonight(at("2026-03-02T01:23:00+00:00")).isoformat() == "2026-03-01"
    assert tonight(at("2026-03-02T12:00:00+00:00")).isoformat() == "2026-03-02"
    assert tonight(at("2026-03-02T13:30:00+02:00")).isoformat() == "2026-03-01"


def test_the_checkouts_own_file_can_be_read() -> None:
    """Whatever is committed is well-formed; a project without nights needs none."""
    load_references(ROOT / "thresholds")
    assert load_references(ROOT / "docs").references == ()
