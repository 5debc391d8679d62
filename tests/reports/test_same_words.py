# SPDX-License-Identifier: Apache-2.0
"""Whatever became of a run: page, summaries, comment and terminal say the view's own words."""

from __future__ import annotations

import csv
import html
import inspect
import io
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from hil.ci import comment_page, conclusion, summary
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.reports.summary import render_markdown
from hil.reports.terminal import render_screen
from hil.reports.view import html as view_html
from hil.reports.view import markdown, text
from hil.reports.view.marks import Code, Link, Table, plain
from hil.reports.view.run import View, view_of
from hil.reports.view.source import Source
from hil.store import JudgedRun, RunDirectory, read_judged_run
from tests.ci.ci_rig import HEAD, a_plan
from tests.ci.conftest import print_page_here
from tests.judging import judge
from tests.make_records import change_info
from tests.reports.as_read import as_read
from tests.reports.outcome_runs import OUTCOMES, leave

_SAID = ("undecided", "sentences", "wrong", "notes", "reporting")  # parts whose sentences stand everywhere


@pytest.fixture(autouse=True)
def _without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write pages in this process; test_ci_comment_hostile.py holds them to the process that writes them."""
    monkeypatch.setattr(comment_page, "print_page", print_page_here)
    monkeypatch.setattr("hil.ci.again.judge", judge)


def _plain(page: str) -> str:
    """Return a page without what makes words strong or a link, its blanks alike."""
    bare = re.sub(r"</?[ab]\b[^>]*>", "", page).replace("\\", "").replace("**", "")
    return " ".join(as_read(html.unescape(bare)).split())


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
    render_screen(*told, run_path="", console=console, verbose=True, reported=run.reported)
    assert isinstance(console.file, io.StringIO)
    return {
        "comment": comment_page.render(facts, "comment"),
        "job summary": comment_page.render(facts, "summary"),
        "plain job summary": summary.render(plan, verdict, {}, safe=True),
        "summary.md": render_markdown(*told, reported=run.reported),
        "first page": render_landing([shown(run)], past=0, raw=()),
        "terminal": console.file.getvalue(),
    }


def _run(folder: Path) -> JudgedRun:
    return read_judged_run(next((folder / "legs" / "virtual").glob("*-quick-*")))


def _view(folder: Path) -> View:
    run = _run(folder)
    return view_of(Source(run.verdict, run.info, run.records, reported=run.reported))


def _said(view: View) -> set[str]:
    """Return the sentences of figures, what went wrong, notes and next steps."""
    parts = [part for part in view.parts if part.name in _SAID]
    lines = [line for part in parts if isinstance(part.body, tuple) for line in part.body]
    return {_plain(plain(one)) for line in lines for one in (line.words, *line.more)} | {
        _plain(plain(step)) for step in view.steps
    }


@pytest.mark.slow
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_same_words_stand_everywhere(tmp_path: Path, outcome: str) -> None:
    """Title and sentence of the banner, whole; figures in words, faults, notes and next steps."""
    texts = {place: _plain(page) for place, page in _texts(tmp_path, outcome).items()}
    view = _view(tmp_path)
    assert _plain(view.headline.text) in texts["terminal"]
    for words in map(_plain, (view.headline.title, view.headline.said)):
        assert {place: words in page for place, page in texts.items()} == dict.fromkeys(texts, True)
    del texts["plain job summary"]  # where the reports cannot write theirs
    found = {place: {one for one in _said(view) if one in page} for place, page in texts.items()}
    assert found == dict.fromkeys(texts, _said(view))
    assert _said(view) or outcome == "pass"


def test_why_a_limit_is_undecided_and_the_way_out_stand_open_everywhere(tmp_path: Path) -> None:
    """Both stand before anything that a person has to open, and on the terminal's one screen."""
    texts = _texts(tmp_path, "too-few-samples")
    run, console = _run(tmp_path), Console(width=80, file=io.StringIO(), no_color=True)
    render_screen(run.info, run.verdict, run.records, run_path="", console=console, reported=run.reported)
    assert isinstance(console.file, io.StringIO)
    texts["one screen"] = console.file.getvalue()
    texts["plain job summary"] = texts["plain job summary"].replace("<details>", "", 1)  # opens the leg's own
    for words in ("too few samples, 20 of at least 40", "more samples may decide them: hil run --boots 4"):
        found = {place: words in _plain(page.partition("<details")[0]) for place, page in texts.items()}
        assert found == dict.fromkeys(texts, True)


def _as_csv(view: View) -> str:
    """Write a view as CSV: what a new place for it takes."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["headline", view.headline.title, view.headline.said])
    writer.writerows(["next", plain(step)] for step in view.steps)
    for part in view.parts:
        if isinstance(part.body, Table):
            writer.writerows([part.name, *map(plain, cells)] for cells in part.body.rows)
        elif isinstance(part.body, tuple):
            writer.writerows([part.name, plain(line.words), *map(plain, line.more)] for line in part.body)
    return stream.getvalue()


def test_a_new_place_takes_a_few_lines(tmp_path: Path) -> None:
    """One that nobody thought of has all words, from the view alone, in at most 60 lines."""
    leave(tmp_path / "legs" / "virtual", "limit-broken")
    view = _view(tmp_path)
    lines = list(csv.reader(io.StringIO(_as_csv(view))))
    assert lines[0] == ["headline", view.headline.title, view.headline.said]
    assert any(line[0] == "next" and line[1].startswith("hil compare HEAD~1 ") for line in lines)
    assert any(line[:2] == ["breaches", "✗ broken"] for line in lines)
    assert _said(view) <= {_plain(cell) for line in lines for cell in line}
    assert len(inspect.getsource(_as_csv).splitlines()) <= 60


def test_a_link_and_a_code_span_are_written_for_their_target() -> None:
    """A view escapes nothing; each renderer does, and two harmless texts do not become a mention."""
    words = (Code("a|b"), " ", Link("<c>", "x#1"), " @", "everyone")
    assert text.written(words) == "a|b <c> @everyone"
    assert view_html.written(words) == 'a|b <a href="x#1">&lt;c&gt;</a> @everyone'
    assert markdown.written(words) == "`a¦b` [&#60;c&#62;](x#1) `@everyone`"
