# SPDX-License-Identifier: Apache-2.0
"""Whatever became of a run: page, summaries, comment and terminal say the banner's own words."""

from __future__ import annotations

import html
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from hil.ci import comment_page, conclusion, summary
from hil.gate.words.banner import banner_of
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.reports.summary import render_markdown
from hil.reports.terminal import render_screen
from hil.store import RunDirectory, read_judged_run
from tests.ci.ci_rig import HEAD, a_plan
from tests.make_records import change_info
from tests.reports.as_read import as_read
from tests.reports.outcome_runs import OUTCOMES, leave


def _plain(text: str) -> str:
    return " ".join(as_read(html.unescape(text)).replace("\\", "").split())


def _texts(folder: Path, outcome: str) -> dict[str, str]:
    """Return what is shown of a run of ``outcome``, by where it stands."""
    path = leave(folder / "legs" / "virtual", outcome)
    (folder / "legs" / "virtual" / "latest").unlink(missing_ok=True)
    change_info(RunDirectory.open(path), git={"commit": HEAD, "dirty": False})
    for other in set((folder / "legs" / "virtual").iterdir()) - {path}:
        shutil.rmtree(other) if other.is_dir() else other.unlink()
    run, plan = read_judged_run(path), a_plan()
    verdict = conclusion.conclude(plan, folder / "legs", {})
    facts = comment_page.facts_of(plan, verdict, folder / "legs", comment_page.Source({}))
    console = Console(width=2000, file=io.StringIO(), no_color=True)
    told = (run.info, run.verdict, run.records)
    render_screen(*told, run_path="", console=console, reported=run.reported)
    assert isinstance(console.file, io.StringIO)
    return {
        "comment": comment_page.render(facts, "comment"),
        "job summary": comment_page.render(facts, "summary"),
        "plain job summary": summary.render(plan, verdict, {}, safe=True),
        "summary.md": render_markdown(*told, reported=run.reported),
        "first page": render_landing([shown(run)], past=0, raw=()),
        "terminal": console.file.getvalue(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_same_words_stand_everywhere(tmp_path: Path, outcome: str) -> None:
    """Title and sentence of the banner, whole; on the terminal both in one line."""
    texts = {place: _plain(text) for place, text in _texts(tmp_path, outcome).items()}
    run = read_judged_run(next((tmp_path / "legs" / "virtual").glob("*-quick-*")))
    banner = banner_of(run.verdict, run.reported.changes)
    assert _plain(banner.text) in texts.pop("terminal")
    for words in map(_plain, (banner.title, banner.said)):
        assert {place: words in text for place, text in texts.items()} == dict.fromkeys(texts, True)
