# SPDX-License-Identifier: Apache-2.0
"""The last screen of a terminal: 24 lines of 80 columns, the banner's words last, whatever happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.cli.gate import command as gate
from hil.gate.words.banner import banner_of
from hil.model import Entry, Fault, NotRun, Verdict
from hil.store import read_judged_run
from hil.store.run_info import ComparedInfo, ImageInfo, Sources
from tests.judging import judge
from tests.make_records import RUN_ID, publish_record, publish_thresholds, run_info
from tests.reports.outcome_runs import OUTCOMES, leave
from tests.reports.test_reports_compared import GREW, terminal, verdict_of

COLUMNS, LINES = 80, 24
SHAS = {"base_sha": "313d06795284a1a55a7b", "head_sha": "c0f88a67e9d6d0c45da3"}


def screen(verdict: Verdict, info: dict[str, object] | None = None, **said: object) -> list[str]:
    return terminal(verdict, run_info(**(info or {})), **said).splitlines()


def judged(entries: Sequence[Entry]) -> Verdict:
    return judge(entries, {"publish": publish_thresholds()})


@pytest.mark.slow
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_stored_run_of_any_outcome_ends_with_one_screen(tmp_path: Path, outcome: str) -> None:
    """`hil gate` prints what the run ended with: one screen, at its end the banner's one line."""
    path = leave(tmp_path, outcome)
    environment = {"COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    said = CliRunner().invoke(gate, [str(path)], env=environment, standalone_mode=False).output
    lines = said.splitlines()[1:]  # below what became of verdicts.json
    assert len(lines) < LINES
    assert max(len(line) for line in lines if str(path.name) not in line) <= COLUMNS
    run = read_judged_run(path)
    banner = banner_of(run.verdict, run.reported.changes)
    assert " ".join(said.split()).endswith(f"─ {banner.sign} {banner.text}")


def test_eight_boards_with_long_names_and_forty_warnings_fit() -> None:
    """What has no room is counted: long names are cut, the verdict and the way to the rest are not."""
    boards = [f"bench-esp32s3-in-the-cellar-of-house-{n}" for n in range(8)]
    slow: list[Entry] = [publish_record(board=board, latency_ms=60) for board in boards]
    gone = [Fault(RUN_ID, "rig", 3, f"{board} vanished. " + "word " * 30, board) for board in boards]
    verdict = judged([*slow, *gone])
    verdict = replace(verdict, warnings=[f"warning {n} " + "word " * 40 for n in range(40)])
    lines = screen(verdict, {"ci": SHAS}, status="0, as --undecided-status asks")
    assert len(lines) < LINES
    assert max(map(len, lines)) <= COLUMNS
    assert any(line.startswith("  … and ") and line.endswith("more, in the summary") for line in lines)


def test_a_figure_names_its_board_and_what_tells_its_case() -> None:
    """Parameters that all cases of the bench share are not repeated, the board's name is never pushed out; a
    case without room is its value, for half of its parameter's name tells nothing."""
    both = {"qos": 2, "payload_bytes": 1024, "interval_us": 40_000}
    entries: list[Entry] = [
        publish_record(board="v1", overrides=both, latency_ms=60),
        publish_record(board="v2", overrides={**both, "transport": "tls"}, latency_ms=60),
    ]
    figures = [line for line in screen(judged(entries)) if line.startswith("✗ publish latency p95")]
    assert len(figures) == 2
    assert all("qos" not in line and "payload" not in line for line in figures)
    assert any(" transport=tls v2 " in line for line in figures)
    crowded = [
        publish_record(board="bench-esp32-s3", overrides=own, latency_ms=60)
        for own in ({}, {"transport": "mtls"})
    ]
    figures = [line for line in screen(judged(crowded)) if line.startswith("✗ publish latency p95")]
    assert any(" mtls " in line for line in figures)
    assert any(" defaul… " in line for line in figures)


def test_a_regression_ends_with_the_command_that_finds_its_commit() -> None:
    """Good, bad and case stand in it where the commits are known: the pull request's, or the images'."""
    images = {"esp32": ImageInfo("0" * 64, SHAS["base_sha"], dirty=False)}
    local = {"git": Sources(SHAS["head_sha"], dirty=False), "compared": ComparedInfo("base", images)}
    verdict = verdict_of(GREW)
    for info in ({"ci": SHAS}, local):
        said = " ".join(" ".join(screen(verdict, dict(info))).split())
        bad, good = SHAS["head_sha"][:12], SHAS["base_sha"][:12]
        steps = rf"git bisect start .*--first-parent {bad} {good} && git bisect run sh bisect\.sh publish"
        assert re.search(f"docs/operate/bisect.md .*: {steps}", said)
    assert "docs/operate/bisect.md" in " ".join(screen(verdict))


@pytest.mark.parametrize(
    ("measured", "command"), [("base_sha", "git diff HEAD"), ("head_sha", "hil compare HEAD")]
)
def test_a_regression_of_what_is_not_committed_sends_nobody_to_a_commit(measured: str, command: str) -> None:
    """Against its own commit it is in the diff; against an older commit it may be in either."""
    images = {"esp32": ImageInfo("0" * 64, SHAS["base_sha"], dirty=False)}
    info = {"git": Sources(SHAS[measured], dirty=True), "compared": ComparedInfo("base", images)}
    lines = screen(verdict_of(GREW), info)
    assert any(line.startswith(f"Next     {command} ") for line in lines)
    assert not any("bisect" in line for line in lines)


def test_what_the_exit_status_says_stands_above_the_verdict() -> None:
    """Where CI goes on after an undecided run the screen says so, and still ends with the verdict."""
    verdict = judged([publish_record(rows=20)])
    lines = screen(verdict, status="0, as asked")
    rule = next(n for n, line in enumerate(lines) if line.startswith("──"))
    assert lines[rule - 1] == "Status   0, as asked"
    assert lines[rule + 1].startswith("? UNDECIDED: ")


def test_what_a_board_cannot_measure_is_counted() -> None:
    """Cases that a board's chip or kind rules out are one line of the screen; those that an equal image
    spares are none: they could be measured."""
    why = "cost is for emulated boards"
    ruled_out = [
        NotRun(RUN_ID, f"v{n}", "cost/part=queue", f"{why}, not v{n}", "ruled-out") for n in range(4)
    ]
    verdict = replace(judged([publish_record()]), not_run=ruled_out)
    (line,) = (line for line in screen(verdict) if "left out" in line)
    assert line.startswith("– left out: 4 cases")
    assert sum(why in line for line in screen(verdict, verbose=True)) == 4
    spared = [NotRun(RUN_ID, "v1", "publish", "the image is the base's, byte for byte", "identical")]
    assert not any("left out" in line for line in screen(replace(verdict, not_run=spared)))
