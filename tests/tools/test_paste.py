# SPDX-License-Identifier: Apache-2.0
"""The program that pastes what it copied: a value that is not found is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.boards.rack import load_rack
from hil.store import RunDirectory
from tests import in_process
from tests.golden.comparing import RENDERED, STORED
from tests.lab import ROOT
from tests.reports.as_read import Seen
from tools import paste
from tools.comment_page import to_html
from tools.paste import Values, invisible, not_in_git, not_planned

pytestmark = pytest.mark.slow

(RUN,) = RunDirectory.list(STORED / "out")


def test_each_kind_of_value_is_copied() -> None:
    """What the code spans of a summary hold is sorted by its grammar."""
    page = (RENDERED / "summary.md").read_text(encoding="utf-8")
    values = Values(Seen(to_html(page)).spans, {"e1", "e2", "e4"})
    assert values.run_ids == [RUN.path.name]
    assert values.commands == [f"hil gate out/{RUN.path.name}"]
    assert set(values.boards) == {"e1", "e2", "e4"}
    assert "publish/count=40,warmup=2" in values.cases
    assert values.digests
    assert values.times
    assert values.metrics


def test_what_is_not_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest that git and images do not have, a case and a board that no run plans, a hidden character."""
    assert list(not_in_git(["0123456789ab", "feedc0de0001"], {"feedc0de0001ffff"})) == ["0123456789ab"]
    monkeypatch.setattr(paste, "_hil", in_process.hil)
    rack = Path(ROOT / "hil/racks/virtual.yaml")
    board = load_rack(rack).boards[0].id
    unknown = not_planned(["jitter/defaults", "jitter/count=7"], [board, "b0"], rack)
    assert set(unknown) == {"jitter/count=7", "b0"}
    assert invisible("a\u200bb") == ["\u200b"]
