# SPDX-License-Identifier: Apache-2.0
"""What follows a verdict: every report, and none that can change the verdict."""

from __future__ import annotations

import functools
import html
import io
import math
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hil.base.errors import ConfigError
from hil.fixtures.measure import keep_limits
from hil.gate.words.banner import banner_of
from hil.history.files import keep, read_past
from hil.metrics.sessions import History
from hil.model import Entry
from hil.reports.finish import ReportOptions, finish, sentence_of
from hil.reports.rebuild import build_report
from hil.reports.terminal import render_screen
from hil.store import Reported, RunDirectory, add_verdict, read_judged_run, read_measured
from hil.store.reported import read_reported
from tests.golden.comparing import RENDERED, STORED, unpacked
from tests.history.history_files import night
from tests.history.nights_rig import make_history, simulate
from tests.history.saved import save
from tests.make_records import THRESHOLDS_ROOT, publish_record
from tests.reports.allure_runs import eventful_entries, judged
from tests.reports.as_read import as_read
from tests.reports.prometheus_rig import run_pushgateway

OTHER = "20260210T010000Z-quick-0002"
CLOSED = "http://127.0.0.1:9"  # the discard port: nothing listens there
NIGHT = {"rack": "lab", "trigger": "nightly", "started_utc": "2026-02-10T01:00:00Z"}


def finished(out: Path, **options: object) -> RunDirectory:
    directory = RunDirectory.open(judged(out, eventful_entries()))
    run = read_judged_run(directory.path)
    finish(run, ReportOptions(out, **options), say=lambda _sentence: None)  # type: ignore[arg-type]
    return directory


def reported(directory: RunDirectory) -> Reported:
    return read_reported(directory.path)


def slower_nights() -> History:
    """Return 34 nights of the rack lab; from the twentieth on the firmware is slower."""
    chance = np.random.default_rng(11)
    return make_history(simulate(chance, nights=34, firmware=lambda n: math.log1p(0.2) * (n >= 20)))


@pytest.mark.slow
def test_a_run_ends_with_every_report_and_says_where_they_are(tmp_path: Path) -> None:
    """Allure results, history, metrics at the gateway, the site; the summary names the report."""
    with run_pushgateway(tmp_path) as gateway:
        directory = finished(tmp_path / "out", pushgateway=gateway.url)
        assert gateway.samples(rack="virtual")["hil_run_exit_code"]
    index = tmp_path / "out" / "report" / "index.html"
    assert index.is_file()
    assert reported(directory) == Reported(report=str(index))
    assert f"report: `{index}`" in directory.summary_path.read_text()
    assert list((directory.path / "allure-results").glob("*-result.json"))
    assert [run.run_id for run in read_past(tmp_path / "out" / "history").runs] == [directory.run_id]


@pytest.mark.slow
def test_an_open_change_of_the_nights_is_said_alike_everywhere(tmp_path: Path) -> None:
    """A night that kept its limits is amber beside an open change, with the same words wherever they stand;
    of a pull request on the same rack nothing is said, nor of a run without nights before it.
    """
    save(slower_nights(), tmp_path / "nightly" / "history")
    directory = RunDirectory.open(judged(tmp_path / "nightly", quiet_entries(), info=NIGHT))
    options = ReportOptions(tmp_path / "nightly")
    done = finish(read_judged_run(directory.path), options, say=lambda _sentence: None)
    (words,) = reported(directory).changes
    assert list(done.changes) == [words]
    assert words.startswith("firmware: publish latency p50 19 %")
    assert words.endswith(", open 14 nights")
    run = read_judged_run(directory.path)
    said = banner_of(run.verdict, run.reported.changes)
    assert (said.tone, said.title) == ("open", "LIMITS KEPT, 1 CHANGE OPEN")
    console = Console(width=400, file=io.StringIO())
    render_screen(run.info, run.verdict, run.records, run_path="", console=console, reported=run.reported)
    summary, page = directory.summary_path, tmp_path / "nightly" / "report" / "index.html"
    shown = [as_read(summary.read_text()), html.unescape(page.read_text()), console.file.getvalue()]  # type: ignore[attr-defined]
    assert [said.title in text and words in text for text in shown] == [True, True, True]
    for trigger, folder in (("pr", "nightly"), ("nightly", "alone")):
        out, other = tmp_path / folder, {**NIGHT, "trigger": trigger}
        own = RunDirectory.open(judged(out, quiet_entries(), run_id=OTHER, info=other))
        finish(read_judged_run(own.path), ReportOptions(out, site=False), say=lambda _sentence: None)
        assert reported(own).changes == ()


@pytest.mark.slow
def test_a_night_measured_without_its_history_learns_of_it_when_it_is_reported(tmp_path: Path) -> None:
    """In CI the machine that measures has no history: the report's first page, run.json and summary agree."""
    own = RunDirectory.open(judged(tmp_path, quiet_entries(), info=NIGHT))
    finish(read_judged_run(own.path), ReportOptions(tmp_path, site=False), say=lambda _sentence: None)
    assert reported(own).changes == ()
    save(slower_nights(), tmp_path / "history")
    folders: dict[str, Any] = {"legs": None, "out": tmp_path, "history_folder": tmp_path / "history"}
    build_report([own.path], **folders, single_file=True, append=True)
    (words,) = reported(own).changes
    page = html.unescape((tmp_path / "report" / "index.html").read_text())
    assert [words in text for text in (as_read(own.summary_path.read_text()), page)] == [True, True]


@pytest.mark.parametrize(("trigger", "nights", "looks"), [("nightly", 1, 1), ("nightly", 0, 0), ("pr", 1, 0)])
def test_changes_are_looked_for_where_a_rack_has_boot_values(
    tmp_path: Path, trigger: str, nights: int, looks: int
) -> None:
    """Without a site; the run itself, which has entered the history by then, is none of its nights."""
    for number in range(nights):
        keep(tmp_path / "out" / "history", night(number, rack="virtual"))
    info = {"rack": "virtual", "trigger": trigger}
    run = read_judged_run(judged(tmp_path / "out", quiet_entries(), info=info))
    said: list[str] = []
    finish(run, ReportOptions(tmp_path / "out", site=False), say=said.append)
    assert len(said) == looks


def quiet_entries() -> list[Entry]:
    return [publish_record(board="b1", boot_index=boot) for boot in range(3)]


def test_what_a_report_could_not_do_is_a_warning(tmp_path: Path) -> None:
    """A gateway that is down and a damaged history: the verdict stays, the summary says both."""
    out = tmp_path / "out"
    directory = RunDirectory.open(judged(out, eventful_entries()))
    damaged = out / "history" / "virtual" / f"{directory.run_id}.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not json\n")
    before = directory.verdicts_path.read_bytes()
    options = ReportOptions(out, pushgateway=CLOSED, site=False)
    finish(read_judged_run(directory.path), options, say=lambda _sentence: None)
    assert directory.verdicts_path.read_bytes() == before
    summary = as_read(directory.summary_path.read_text())
    assert re.search(rf"{damaged}: .*not JSON", summary)
    assert f"{CLOSED}: Connection refused" in summary
    assert len(reported(directory).warnings) == 2


def test_a_damaged_past_of_the_tests_is_a_warning(tmp_path: Path) -> None:
    """A damaged line in allure.jsonl: no error but a sentence with file, line and the way out."""
    history = tmp_path / "out" / "history" / "allure.jsonl"
    history.parent.mkdir(parents=True)
    history.write_bytes(b"\n\xff\xfejunk")
    directory = finished(tmp_path / "out")
    (warning,) = reported(directory).warnings
    assert f"{history}:2: not JSON" in warning
    assert f"sed -i 2d {history}" in warning
    assert history.read_bytes() == b"\n\xff\xfejunk"


def test_a_defect_in_one_report_is_a_warning_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody thought of names its type; what comes after it is done all the same."""
    monkeypatch.setattr("hil.reports.allure.complete_results", lambda _path: {}["no such key"])
    directory = finished(tmp_path / "out", site=False)
    (warning,) = reported(directory).warnings
    assert re.match("Allure results: .* KeyError", warning)
    assert len(read_past(tmp_path / "out" / "history").runs) == 1
    assert "internal error, KeyError" in directory.summary_path.read_text()
    assert sentence_of(ConfigError("wrong", next_step="right")) == "wrong Next: right"


def test_a_run_that_ends_late_leaves_a_newer_report(tmp_path: Path) -> None:
    """The report shows the run that started last; the older one says so, and how to build its own."""
    out, newer = tmp_path / "out", "20991231T000000Z-quick-0001"
    (out / "report" / "runs" / newer).mkdir(parents=True)
    directory = finished(out)
    (warning,) = reported(directory).warnings
    assert f"{out}/report shows the run {newer}, which started later" in warning
    assert f"hil report build --out {out} {directory.path}" in as_read(directory.summary_path.read_text())
    assert [path.name for path in (out / "report").iterdir()] == ["runs"]
    assert not list(out.glob(".report-*"))


def test_a_site_that_cannot_be_built_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Node is not installed the run still ends with its summary, which says what to do."""
    monkeypatch.setattr("hil.reports.site.generator.ALLURE", tmp_path / "none")
    directory = finished(tmp_path / "out")
    assert reported(directory).report == ""
    assert ".ci/bootstrap run" in directory.summary_path.read_text()


_OPENED: list[Counter[Path]] = []  # where counting() is under way, its count


def _count(event: str, arguments: tuple[object, ...]) -> None:
    """Count a file that is opened for reading; an audit hook stays until the process ends."""
    if event == "open" and _OPENED and isinstance(arguments[0], str | bytes | os.PathLike):
        access = arguments[2] if isinstance(arguments[2], int) else os.O_RDONLY
        if access & os.O_ACCMODE != os.O_WRONLY:
            _OPENED[-1][Path(os.fsdecode(arguments[0])).resolve()] += 1


@functools.cache
def _listen() -> None:
    sys.addaudithook(_count)


@contextmanager
def counting() -> Iterator[Counter[Path]]:
    """Count how often each file is opened for reading by this process."""
    _listen()
    _OPENED.append(Counter())
    try:
        yield _OPENED[-1]
    finally:
        _OPENED.pop()


def stored_comparison(out: Path) -> Path:
    """Leave the stored run of the golden files, which compares, has traces and loss ledgers."""
    shutil.copytree(STORED / "out", out)
    (run,) = RunDirectory.list(out)
    run.verdicts_path.write_bytes(unpacked(RENDERED / "verdicts.json"))
    return run.path


def run_of_a_study(out: Path) -> Path:
    """Leave a run whose suite is a study's, so that its folder keeps the published studies too."""
    directory = RunDirectory.open(judged(out, eventful_entries(), info={"suite": "esp32-tcpip-quick"}))
    keep_limits(directory, THRESHOLDS_ROOT)
    return directory.path


@pytest.mark.slow
@pytest.mark.parametrize("leave", [stored_comparison, run_of_a_study])
def test_one_reading_serves_every_report(tmp_path: Path, leave: Callable[[Path], Path]) -> None:
    """From the last record to the last report, journal, run.json and each thresholds file are opened for
    reading once, whatever asks; the verdict, which is written on the way, is never read back."""
    out = tmp_path / "out"
    run = leave(out).resolve()
    verdict = read_judged_run(run).verdict
    limits = sorted((run / "thresholds").rglob("*.yaml"))
    with run_pushgateway(tmp_path) as gateway, counting() as opened:
        options = ReportOptions(out, pushgateway=gateway.url)
        done = finish(add_verdict(read_measured(run), verdict), options, say=lambda _sentence: None)
    assert done.report
    named = [run / name for name in ("records.jsonl", "verdicts.json", "run.json")]
    assert [opened[path] for path in named] == [1, 0, 1]
    assert {path: opened[path] for path in limits if opened[path] > 1} == {}
    assert all(opened[path] == 1 for path in limits if path.parent == run / "thresholds")
