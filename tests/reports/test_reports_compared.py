# SPDX-License-Identifier: Apache-2.0
"""Comparisons with the base where a person reads them: terminal, summary, first page, test report."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from hil.base.errors import ConfigError
from hil.model import BoardEffect, ComparedSeries, NotRun, RunRecord, Verdict
from hil.reports import compared
from hil.reports.allure.description import describe
from hil.reports.allure.outcome import outcome_of
from hil.reports.allure.story import story_of
from hil.reports.metrics import board_groups
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import public_info, shown
from hil.reports.summary import render_markdown
from hil.reports.terminal import render_screen
from hil.reports.view.figures import compared_table
from hil.reports.view.marks import plain
from hil.store import RunDirectory, RunInfo, read_judged_run
from hil.store.run_info import NoiseInfo
from hil.store.verdicts import read_verdict
from hil.thresholds import load_all
from tests.judging import judge
from tests.lab import ROOT
from tests.make_records import RUN_ID, publish_record, run_info
from tests.reports.as_read import as_read

CASE = publish_record().case_id
INFO = run_info(suite="pr", boards=[{"id": "virtual-1", "kind": "virtual", "target": "virtual-esp32"}])


def comparison(**changes: object) -> ComparedSeries:
    base = ComparedSeries(
        series_id=f"virtual/virtual-esp32/{CASE}/publish_latency_p50_us",
        rack="virtual",
        target="virtual-esp32",
        kind="virtual",
        boards=("virtual-1", "virtual-2"),
        role="base",
        case_id=CASE,
        case_label="defaults",
        metric="publish_latency_p50_us",
        unit="us",
        direction="lower",
        outcome="pass",
        blocking=True,
        sentence="it stayed within its tolerance.",
        change=0.004,
        low=-0.031,
        high=0.041,
        z=0.3,
        boundary=3.9,
        look=1,
        looks=6,
        early=True,
        candidate_boots=4,
        other_boots=2,
        boot_deviation=0.021,
        tolerance=0.10,
        min_effect=0.03,
        smallest_effect=0.055,
        checks=("same access point",),
        effects=(BoardEffect("virtual-1", 2, 1, 0.004, -0.05, 0.06), BoardEffect("virtual-2", 2, 1)),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


GREW = comparison(
    outcome="regressed", change=0.123, low=0.081, high=0.167, z=6.1, sentence="It grew by 12.3 %."
)


def verdict_of(*items: ComparedSeries) -> Verdict:
    bad = any(compared.is_blocked(item) for item in items)
    return Verdict(
        RUN_ID, "regressed" if bad else "pass", int(bad), "The sentence.", (), (), (), compared=items
    )


def terminal(verdict: Verdict, info: RunInfo = INFO, records: Sequence[RunRecord] = (), **said: Any) -> str:
    """Return the last screen of a terminal of 80 by 24."""
    console = Console(width=80, height=24, record=True, force_terminal=True, file=io.StringIO())
    render_screen(info, verdict, records, console=console, **{"run_path": f"out/{RUN_ID}", **said})
    return console.export_text()


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory.create(tmp_path, INFO)
    directory.append(publish_record())
    directory.append(replace(publish_record(boot_index=1, latency_ms=70), role="base"))
    directory.write_verdict(verdict_of(GREW))
    return directory


def test_the_terminal_shows_what_blocks_in_one_screen() -> None:
    """A change with its interval, the verdict last; ten comparisons fit 80 by 24. Where a blocking comparison
    has no decision the loud word says so, and no tick stands beside it."""
    text = terminal(verdict_of(GREW))
    assert text.splitlines()[-1].startswith("✗ REGRESSED: ")
    assert re.search(r"✗ publish latency p50 .*\+12.3 % \+8.1 … \+16.7 % vs base", text)
    ten = [comparison(metric=f"m{n}_us", series_id=str(n)) for n in range(10)]
    lines = terminal(verdict_of(*ten)).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    unsure = replace(verdict_of(comparison(outcome="undecided")), outcome="undecided", exit_code=4)
    assert terminal(unsure).splitlines()[-1].startswith("? UNDECIDED: ")
    assert "✓" not in terminal(unsure)


def test_many_comparisons_leave_room_on_the_screen() -> None:
    """Of thirty on three targets the one that decides stands alone; --verbose has them all."""
    many = [
        comparison(series_id=f"{n}", target=f"virtual-{target}", case_label=f"reads=25,writes={n},after=25")
        for n in range(10)
        for target in ("esp32", "esp32s3", "esp32c3")
    ]
    verdict = verdict_of(*many, replace(GREW, series_id="z"))
    lines = terminal(verdict).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert [line[:21] for line in lines if "publish latency" in line] == ["✗ publish latency p50"]
    everything = terminal(verdict, verbose=True).splitlines()
    assert sum("publish latency p50" in line for line in everything) >= 31


def test_simulated_noise_is_said_wherever_figures_are(run: RunDirectory) -> None:
    """Terminal, summary.md and first page repeat what run.json says of it; without noise none says a word."""
    words = "Simulated noise: profile typical (boots 4 %, sessions 3 %), seed 7."
    noise: dict[str, Any] = {"simulated": True, "profile": "typical", "seed": 7, "description": words[17:-1]}
    info = msgspec.structs.replace(INFO, noise=NoiseInfo(**noise))
    assert "Simulated" not in terminal(verdict_of(GREW))
    assert words in terminal(verdict_of(GREW), info)
    assert f"> {words}" in as_read(render_markdown(info, verdict_of(GREW), []))
    assert "Simulated" not in render_landing([shown(read_judged_run(run.path))], past=1, raw=[])
    run.end(info)
    stored = shown(read_judged_run(run.path))
    assert words in render_landing([stored], past=1, raw=[])
    assert public_info(stored.info)["noise"] == noise


def test_a_case_that_was_measured_is_not_called_left_out(run: RunDirectory) -> None:
    """Where the budget ends a comparison, its case is undecided, neither skipped nor ruled out."""
    why = "the time budget of 10 min ended after look 1 of 2"
    cut = NotRun(RUN_ID, "virtual-1", CASE, why, "ruled-out")
    unsure = comparison(outcome="undecided", reason=why, sentence=f"no verdict, {why}.")
    measured = replace(
        judge([publish_record()], load_all(ROOT / "thresholds")), compared=(unsure,), not_run=(cut,)
    )
    run.append(cut)
    run.write_verdict(measured)
    assert outcome_of(story_of(read_judged_run(run.path)).stories[0])[0] == "unknown"
    assert "Ruled out" not in render_markdown(INFO, measured, [])


def test_the_summary_shows_the_table_and_what_is_behind_what_did_not_pass() -> None:
    """What blocks is a table; a regression has its sentence and its boards; what passed is folded."""
    text = as_read(render_markdown(INFO, verdict_of(GREW, comparison(blocking=False)), []))
    assert re.search("^## .* virtual-esp32$", text, re.MULTILINE)
    assert f"- {GREW.sentence}\n  - virtual-1: +0.4 % [-5.0 … +6.0 %], 2 + 1 boots" in text
    assert "<summary>1 comparison within" in text


def test_how_far_a_reference_lies_away_is_no_change_where_it_is_advice() -> None:
    """Of a night it is folded, for the change points say what changed; what may fail a run stands open."""
    beside = replace(GREW, role="reference")
    assert "What changed" in render_markdown(INFO, verdict_of(beside), [])
    said = render_markdown(INFO, verdict_of(replace(beside, blocking=False)), [])
    assert "What changed" not in said
    assert "<summary>1 comparison without" in said


def test_a_cell_shows_what_is_known() -> None:
    """Few boots leave any change possible; an exact figure has no interval and is in the metric's unit. At
    an early look the interval may be absurd; the cell has what the pass excluded. Boots left out are told. A
    comparison of the same bytes shows no number that nobody measured.
    """
    unsure = comparison(outcome="undecided", low=-0.98, high=67.4, pass_bound=None)
    exact = comparison(metric="image_bytes", unit="bytes", relative=False, change=2048, low=2048, high=2048)
    assert [compared.interval(one) for one in (unsure, exact)] == ["too wide", "exact"]
    assert (compared.change(exact), compared.size(exact, 4096)) == ("+2,048 B", "4,096 B")
    assert compared.bound(comparison(pass_bound=0.082, low=-0.31, high=0.402)) == "≤ +8.2 %"
    assert compared.bound(comparison(direction="higher", pass_bound=-0.082)) == "≥ -8.2 %"
    assert compared.bound(comparison(outcome="undecided")) == "-3.1 … +4.1 %"
    words = "boot 3: the channel 11 (else 6)"
    told = comparison(effects=(BoardEffect("virtual-1", 6, 6, 0.004, -0.05, 0.06, left_out=words),))
    assert compared.effects(told)[0].endswith(f"6 + 6 boots, left out: {words}")
    nothing: dict[str, object] = dict.fromkeys(("change", "low", "high", "z", "boundary"))
    same = comparison(**nothing, candidate_boots=0, other_boots=0, effects=())
    (row,) = compared_table([same]).rows
    assert [plain(cell) for cell in (row[0], *row[3:5])] == ["✓ within", "–", "–"]


def test_the_test_report_fails_the_case_and_leaves_the_base_out(run: RunDirectory) -> None:
    """The case's result fails with the comparison's sentence; samples are the candidate's alone. The first
    page has the comparison as a row of what changed."""
    page = render_landing([shown(read_judged_run(run.path))], past=1, raw=[])
    assert re.search("<h2>.* virtual-esp32</h2>", page)
    assert "+12.3\u00a0%" in page
    story = story_of(read_judged_run(run.path)).stories[0]
    assert outcome_of(story) == ("failed", f"regression: {GREW.sentence}")
    assert [record.role for record in story.records] == ["candidate"]
    assert "+8.1 … +16.7 %" in describe(story, "")


def test_a_stored_verdict_is_read_back_whole(run: RunDirectory) -> None:
    """What was written is what is read; a wrong type in a comparison is named."""
    assert read_verdict(run.verdicts_path) == verdict_of(GREW)
    stored = json.loads(run.verdicts_path.read_text())
    stored["compared"][0]["effects"][0]["low"] = "much"
    run.verdicts_path.write_text(json.dumps(stored))
    with pytest.raises(ConfigError, match=r"compared\[0\]\.effects\[0\]\.low is 'much'"):
        read_verdict(run.verdicts_path)


def test_each_board_of_a_comparison_pushes_it() -> None:
    """Change, boots and outcome have the case's labels; the kind is the group's."""
    (group,) = board_groups(INFO, verdict_of(GREW))
    families = {family.name: family for family in group.families.collect()}
    (sample,) = families["hil_comparison_change_ratio"].samples
    assert sample.value == 0.123
    assert sample.labels["kind"] == "virtual"
    assert sample.labels["role"] == "base"
    assert {s.labels["of"]: s.value for s in families["hil_comparison_boots"].samples} == {
        "candidate": 4,
        "other": 2,
    }
