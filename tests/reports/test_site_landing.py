# SPDX-License-Identifier: Apache-2.0
"""The first page as text: what each part counts, and that nothing which is known is missing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hil.model import Entry, Fault, NotRun
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.rows import LEGEND
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown, title_of
from hil.reports.studies.build import files_of
from hil.store import Reported, RunDirectory, read_judged_run
from tests.make_records import publish_record, publish_thresholds
from tests.reports.as_read import words
from tests.reports.outcome_runs import OUTCOMES, leave
from tests.reports.site_runs import CASES, store_run

NAME = "20261121T101500Z-quick-0001"
BOARDS = [{"id": name, "kind": "virtual", "target": "virtual-esp32"} for name in ("v1", "v2")]
MARGINAL_MS = 21.5
MARGINAL = ("virtual-1", "virtual-8")  # by their seeds both exceed their limit, and neither provably


def page(out: Path, entries: Iterable[Entry], **info: Any) -> str:
    return render_landing([shown(read_judged_run(store_run(out, NAME, entries, **info)))], past=1, raw=())


def case_id(**overrides: str | int) -> str:
    return publish_thresholds().case(overrides).case_id


def vanished() -> list[Entry]:
    """Return what a board leaves that measured two of five cases and then fell silent."""
    return [
        publish_record(board="v1"),
        *(publish_record(board="v2", overrides=case) for case in CASES),
        Fault("", "rig", 3, "silent", "v2", case_id(transport="mtls")),
        *(NotRun("", "v2", case_id(qos=qos), "v2 failed before: silent") for qos in (0, 2)),
    ]


def test_the_cases_of_a_board_add_up(tmp_path: Path) -> None:
    """Each planned case is measured, faulted or not run, and the page counts as many as the test report."""
    said = page(tmp_path, vanished(), boards=BOARDS)
    head = "board target cases measured faulted not run limits kept broken exceeded, not provably undecided"
    assert head in words(said)
    assert "v1 virtual-esp32 1 1 0 0 3 0 0 0" in words(said)
    assert "v2 virtual-esp32 5 2 1 2 6 0 0 0" in words(said)
    results = list((tmp_path / NAME / "allure-results").glob("*-result.json"))
    assert f"Test report → {len(results)} tests:" in words(said)


def test_what_a_boards_own_limits_rule_out_is_no_case_that_is_missing(tmp_path: Path) -> None:
    """It is told apart, in no warning colour, and is no reason for a count. The air is named where the run
    names one."""
    ruled_out = NotRun("", "v1", case_id(qos=2), "too large for it", "ruled-out")
    said = page(tmp_path, [publish_record(board="v1"), ruled_out], boards=BOARDS[:1], profile="hotspot")
    assert "· air profile hotspot ·" in words(said)
    assert "v1 virtual-esp32 1 1 0 0 3 0 0 0" in words(said)
    assert "1 test and 1 ruled out" in words(said)
    assert "Ruled out: 1 1 case on v1: " in words(said)
    assert "<h2>Not run</h2>" not in said
    assert 'class="unsure"' not in said


def test_what_is_beyond_a_limit_is_not_counted_as_kept(tmp_path: Path) -> None:
    """It has a column and a sign of its own, and the sign is explained."""
    said = page(tmp_path, [publish_record(latency_ms=MARGINAL_MS)])
    assert "virtual-1 virtual-esp32 1 1 0 0 2 0 1 0" in words(said)
    assert re.search(r'<b class="unsure">25\.\d\u00a0ms</b>', said)
    assert LEGEND in said


def test_a_board_that_measured_nothing_keeps_its_name_kind_and_target(tmp_path: Path) -> None:
    """run.json knows them; the page says virtual where the figures would have been."""
    run = store_run(tmp_path, NAME, [Fault("", "rig", 3, "the access point is gone")], boards=BOARDS)
    said = render_landing([shown(read_judged_run(run))], past=0, raw=())
    assert title_of([shown(read_judged_run(run))]).endswith("virtual figures")
    assert "v1 virtual-esp32 0 0 0 0" in words(said)
    for text in (said, (run / "summary.md").read_text()):
        assert VIRTUAL_REMARK in html.unescape(text)


def test_what_went_wrong_in_reporting_stands_open(tmp_path: Path) -> None:
    """A push that failed is told before the sentences of the figures, which are folded."""
    entries = [publish_record(latency_ms=MARGINAL_MS)]
    warnings = ["figures were not pushed: <no route>", "history: the disk is full"]
    run = store_run(tmp_path, NAME, entries)
    RunDirectory.open(run).write_reported(Reported(warnings=tuple(warnings)))
    said = render_landing([shown(read_judged_run(run))], past=1, raw=())
    worth = said.partition("Errors while reporting</h2>")[2]
    assert worth.index("&lt;no route&gt;") < worth.index("the disk is full") < worth.index("did not pass: 1<")


def test_what_is_undecided_is_a_line_a_metric_and_the_sentences_are_a_click_away(tmp_path: Path) -> None:
    """Two boards with the same trouble are one line, with the reason; what exceeds its limit has a row."""
    said = page(tmp_path, [publish_record(board=board, rows=20) for board in MARGINAL], boards=BOARDS)
    open_ = words(re.sub(r"<details.*?</details>", "", said, flags=re.DOTALL))
    line = r"publish latency p95: 1 case on (\S+, \S+), .* 8\.\d+ ms, limit 25 ms: .* 20 of"
    assert re.findall(line, open_) == [", ".join(MARGINAL)]
    assert words(said).count("_p95_us on virtual-") == 2
    beyond = [publish_record(board=board, latency_ms=MARGINAL_MS) for board in MARGINAL]
    exceeded = page(tmp_path / "other", beyond)
    assert exceeded.count("not provably, its limit") == 2
    assert "Limits without a decision" in said
    assert "Limits without a decision" not in exceeded


def test_a_calm_run_is_short(tmp_path: Path) -> None:
    """Of a run that passed stand open the verdict, the limits that are nearest, and the ways on."""
    said = page(tmp_path, [publish_record(board=board) for board in ("v1", "v2")], boards=BOARDS)
    open_ = words(re.sub(r"<details.*?</details>", "", said, flags=re.DOTALL))
    assert "PASS All 6 limits kept." in open_
    assert "air profile" not in words(said)
    assert re.search(r"✓ publish latency p95 v\d \(virtual\) ≤ 25.* 3\d % 1 8\.\d+ ", open_)
    assert "measured faulted" not in open_
    assert "2 boards, all that was" in said


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_each_outcome_has_its_tone_and_none_is_called_kept_that_was_not(tmp_path: Path, outcome: str) -> None:
    """Green is a pass with nothing open beside it; "LIMITS KEPT" and "all … kept" only where all were."""
    run = read_judged_run(leave(tmp_path, outcome))
    said = render_landing([shown(run)], past=1, raw=())
    tones = {"pass": "good", "regressed": "bad", "limit-broken": "bad"}
    assert f'<section class="verdict {tones.get(outcome, "unsure")}">' in said
    kept = outcome in ("pass", "open-change")
    assert ("limits kept" in words(said).lower() and "all 12" in words(said).lower()) == kept
    assert ("LIMITS KEPT, 1 CHANGE OPEN" in said) == (outcome == "open-change")


def test_a_broken_case_and_a_faulted_one_lead_to_their_test(tmp_path: Path) -> None:
    """One click; a fault of no single case has no such place."""
    slow = publish_record(board="v1", overrides=CASES[1], latency_ms=60)
    said = page(tmp_path, [slow, *vanished(), Fault("", "rig", 3, "no air", "")], boards=BOARDS)
    open_ = re.sub(r"<details.*?</details>", "", said, flags=re.DOTALL)
    linked = re.findall(r'<a href="(tests/index\.html#[0-9a-f]{32})">(.*?)</a>', open_)
    broken = {f"publish latency {stat} publish/transport=tls" for stat in ("p95", "tail5")}
    assert {words(text) for _, text in linked} == {"rig on v2: silent", *broken}
    assert ">rig</b>: no air</li>" in said


def test_studies_of_several_runs_are_told_apart_and_the_newest_stands_first(tmp_path: Path) -> None:
    """Each card names its run's time, rack and air; the order in which runs are given does not matter."""
    runs = []
    for name, profile in (("20261120T101500Z-study-0001", "lab"), ("20261121T101500Z-study-0002", "crowded")):
        run = store_run(tmp_path, name, [publish_record(board="v1")], profile=profile)
        _markdown, data, study_page = (run / file for file in files_of("esp32-tcpip"))
        data.write_text(json.dumps({"boards": [{"kind": "virtual"}]}))
        study_page.write_text("<!doctype html>")
        runs.append(shown(read_judged_run(run)))
    for given in (runs, runs[::-1]):
        cards = re.findall(r"Study esp32-tcpip →</b>([^<]*)<", render_landing(given, past=2, raw=()))
        told = [re.findall(r"11-(\d\d) 10:15 UTC · rack (\w+) · air profile (\w+)", card) for card in cards]
        assert told == [[("21", "virtual", "crowded")], [("20", "virtual", "lab")]]
