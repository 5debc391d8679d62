# SPDX-License-Identifier: Apache-2.0
"""What a person copies out of a page of Markdown, and pastes where it belongs."""

from __future__ import annotations

import re
import shlex
import unicodedata
from pathlib import Path

import pytest

from hil.ci import conclusion, summary
from hil.run.plan.selection import case_of
from hil.store import RunDirectory
from hil.store.verdicts import read_verdict
from hil.thresholds import load_all
from tests.ci.ci_rig import a_plan
from tests.golden.comparing import RENDERED, STORED
from tests.reports.as_read import Seen
from tools.comment_page import to_html

PAGES = ("summary.md", "github/comment.md", "github/short.md", "changes.md")
(RUN,) = RunDirectory.list(STORED / "out")
INFO = RUN.read_info()
VERDICT = read_verdict(RENDERED / "verdicts.json")
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def seen(page: str) -> Seen:
    """Return a page of the golden files as a browser shows it."""
    return Seen(to_html((RENDERED / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES)
def test_no_page_holds_a_character_that_nobody_sees(page: str) -> None:
    """What is copied is what is read, in values and between them; so it is in the page's source."""
    text = (RENDERED / page).read_text(encoding="utf-8") + seen(page).text
    assert not [one for one in text if one != "\n" and unicodedata.category(one) in HIDDEN]


def test_each_value_of_a_run_is_copied_from_its_summary() -> None:
    """Run, commit, time, images, boards, metrics and cases are code spans of their own, whole."""
    spans = set(seen("summary.md").spans)
    series = [*VERDICT.series, *VERDICT.compared]
    images = {record.firmware_sha256[:12] for record in RUN.read().records}
    assert {VERDICT.run_id, INFO.git.commit[:12], INFO.started_utc, *images} <= spans
    assert {INFO.suite, INFO.rack} <= spans
    assert {item.board for item in VERDICT.series} | {item.target for item in VERDICT.compared} <= spans
    assert {item.metric for item in series} <= spans
    assert f"hil gate out/{VERDICT.run_id}" in spans


def test_each_case_on_a_page_is_the_case_that_it_names() -> None:
    """In table or sentence: `hil run --suite` finds it, and that very case."""
    benches = load_all(RUN.path / "thresholds", today=INFO.day)
    series = {item.case_id for item in (*VERDICT.series, *VERDICT.compared)}
    for page in ("summary.md", "github/comment.md"):
        shown, name = seen(page), rf"\b(?:{'|'.join(benches)})/(?:defaults|\w+=[\w.,=]*\w)"
        spans = {one for one in shown.spans if re.fullmatch(name, one)}
        sentences = re.findall(name, " ".join(shown.plain))
        assert spans
        assert sentences
        found = {case_of(benches, one).case_id for one in (*spans, *sentences)}
        assert found <= series
        assert page != "summary.md" or found == series


def test_commits_and_boards_are_copied_from_a_comment() -> None:
    """Both commits, each board that a row names, and the legs."""
    spans = set(seen("github/comment.md").spans)
    assert {INFO.ci.head_sha[:12], INFO.ci.base_sha[:12]} <= spans
    assert {"e1", "e2", "e4", "compare"} <= spans


def test_the_command_of_an_event_is_copied_whole() -> None:
    """A night's page holds the command that narrows an event down as one code span, as a shell reads it."""
    commands = [one for one in seen("changes.md").spans if one.startswith("git bisect ")]
    assert commands
    for command in commands:
        *words, case = shlex.split(command)
        assert words[-3:] == ["run", "sh", "bisect.sh"]
        assert case.startswith("publish/api=publish,")


def test_the_plain_job_summary_names_its_commits(tmp_path: Path) -> None:
    """Where the reports cannot write the page, head and base are code spans too."""
    plan = a_plan(compare=True)
    page = summary.render(plan, conclusion.conclude(plan, tmp_path, {}), {}, safe=True)
    assert {plan.head[:12], plan.base[:12]} <= set(Seen(to_html(page)).spans)
