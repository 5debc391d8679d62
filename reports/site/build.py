# SPDX-License-Identifier: Apache-2.0
"""From run folders to OUT/report, whole or not at all."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.history import history_of
from hil.reports.allure.outcome import CATEGORIES
from hil.reports.history import locked
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.site import generator as outside
from hil.reports.site import points
from hil.reports.site.generator import TREND, generating
from hil.reports.site.landing import render_landing
from hil.reports.site.parts import take_apart
from hil.reports.site.past import draw_past
from hil.reports.site.runs import (
    RAW_FILES,
    Shorten,
    ShownRun,
    copy_raw,
    copy_results,
    shortener,
    shown,
    title_of,
)
from hil.reports.trend import Trend, read_sources, trend_of, write_trend
from hil.store import JudgedRun, time_in
from hil.store.files import disk_error, short_path, typed_path

REPORT = "report"
_WORK = ".report-"
# labels that repeat the path above a test; without them its figures stand on the first screen
_SAID_ELSEWHERE = ["parentSuite", "suite", "subSuite", "framework", "package"]
# Allure compares a metric with the run before it alone, where red and green mean nothing
_UNCOLOURED = {"better": "neutral"}
# what of Allure's charts tells something of a rack: how results stand, stood, and changed
_CHARTS: list[Mapping[str, Any]] = [
    {"type": "currentStatus", "title": "Results"},
    {"type": "statusDynamics", "title": "Results of earlier runs", "limit": points.MOST_POINTS},
    {"type": "statusTransitions", "title": "Changes between runs", "limit": points.MOST_POINTS},
    {"type": "stabilityDistribution", "title": "Stability", "threshold": 90, "groupBy": "feature"},
    {"type": "durationDynamics", "title": "Duration", "limit": points.MOST_POINTS},
]
# A strip of its own above Allure's page, in the colours of the theme that its switch sets, with the way to
# the verdict and to the trend of the test that is open. And the page stays at its top until somebody acts:
# Allure scrolls its first item to the top as soon as it opens.
_WAY_BACK = """<script>{
  const own = Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop");
  let acts = false;
  for (const name of ["keydown", "pointerdown", "wheel", "touchstart"]) {
    addEventListener(name, () => { acts = true; }, { capture: true, once: true });
  }
  const set = function (pixels) { if (acts) own.set.call(this, pixels); };
  Object.defineProperty(Element.prototype, "scrollTop", { ...own, set });
}</script><style>
body { display: flex; flex-direction: column; height: 100vh; margin: 0; }
.way-back { flex: none; display: flex; gap: 24px; padding: 4px 24px; font: 13px/20px system-ui, sans-serif;
  background: var(--color-bg-secondary, transparent); }
.way-back a { text-decoration: none; color: var(--color-text-primary, #1259b8); }
.way-back a:hover { text-decoration: underline; }
#app { flex: 1; min-height: 0; }
#app > div { height: 100%; }
</style><nav class="way-back">
<a href="../index.html">← Verdict</a><a href="../trend/index.html">Trend</a>
</nav><script>{
  const trend = document.querySelector(".way-back a:last-child");
  const follow = () => {
    const id = /^#([0-9a-f]{32})\\b/.exec(location.hash)?.[1];
    trend.href = `../trend/index.html${id ? `#test=${id}` : ""}`;
    trend.textContent = id ? "Trend of this test" : "Trend";
  };
  for (const name of ["hashchange", "popstate"]) addEventListener(name, follow);
  for (const name of ["pushState", "replaceState"]) { // of which no event tells
    const own = history[name].bind(history);
    history[name] = (...words) => { own(...words); follow(); };
  }
  follow();
}</script>"""
TREND_RUNS = 400  # the newest of each suite on a rack: a year of nights
TREND_FILE = "trend.json"


def build_site(
    out: Path,
    judged: Sequence[JudgedRun],
    *,
    history: Path | None = None,
    single_file: bool = True,
    append: bool = True,
    keep_newer: bool = False,
    trend: Trend | None = None,
) -> Path:
    """Write OUT/report for the runs ``judged``; return its index.html.

    ``trend`` is what trend_for() returned for them, where somebody wanted it before.

    The runs' own allure-results are read, and the ``history`` (by default history_of(OUT)), allure.jsonl
    in it. Only allure.jsonl is written, and not where ``append`` is false.
    ``single_file`` makes pages that open from disk by a double click; else the test report is for a web
    server. ``keep_newer`` leaves a report as it is that shows a run which started later.

    Raises:
        ConfigError: two copies of one run, a damaged allure.jsonl, a generator
            that is not installed, or a newer report that is to be kept.
        RigError: the generator failed, another build takes too long, or the disk does not take it; an
            earlier report stays as it was.
    """
    out = out.absolute()  # the generator works in a folder of its own
    folder = (history or history_of(out)).absolute()
    runs = _shown(judged)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out), _work_folder(out) as work, _no_garbage_sought():
            if keep_newer:
                _refuse_older(out, runs)
            site = _assemble(work, runs, folder, trend, single_file=single_file)
            outside.check(site)
            if append:
                points.take_back(folder / "allure.jsonl", work / "allure.jsonl", _lines(runs))
            _replace(out / REPORT, site, work)
    except OSError as error:
        raise disk_error(f"could not write {out / REPORT}", error, "the runs") from error
    return out / REPORT / "index.html"


def _shown(judged: Sequence[JudgedRun]) -> list[ShownRun]:
    """Return the runs in the order of their start, each once, however often it is named."""
    runs: dict[str, JudgedRun] = {}
    for run in judged:
        other = runs.setdefault(run.run_id, run)
        if other.path != run.path:
            raise ConfigError(
                f"{other.path} and {run.path} hold the same run.", next_step="leave one of them out."
            )
    return [shown(runs[run_id]) for run_id in sorted(runs)]


def _refuse_older(out: Path, runs: Sequence[ShownRun]) -> None:
    """Raise ConfigError where OUT/report shows a run that started later than all of ``runs``."""
    shown = [path.name for path in (out / REPORT / "runs").glob("*")]
    newest = max(shown, key=time_in, default="")
    if time_in(newest) > max(time_in(run.run_id) for run in runs):
        words = " ".join(typed_path(run.path) for run in runs)
        raise ConfigError(
            f"{short_path(out / REPORT)} shows the run {newest}, which started later, and was left as it is.",
            next_step=f"for a report of this run: hil report build --out {typed_path(out)} {words}",
        )


@contextmanager
def _work_folder(out: Path) -> Iterator[Path]:
    """Make a folder beside the report, so that it can be renamed into place; the lock on ``out`` is held."""
    for left_by_a_killed_build in out.glob(f"{_WORK}*"):
        shutil.rmtree(left_by_a_killed_build)
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=out) as work:
        yield Path(work)


@contextmanager
def _no_garbage_sought() -> Iterator[None]:
    """Spare Python's search for cycles: a large run is millions of objects, and all of them stay."""
    sought = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if sought:
            gc.enable()


def trend_for(judged: Sequence[JudgedRun], history: Path) -> Trend:
    """Compute the trend of runs beside the ``history``, as their report shows it."""
    with _no_garbage_sought():
        return _trend(_shown(judged), history.absolute())


def _trend(runs: Sequence[ShownRun], history: Path) -> Trend:
    """Compute the trend. What of the past is damaged costs its part of it, and is named on its page."""
    sources, title = read_sources(history, runs), title_of(runs)
    return trend_of(runs, sources.lines, sources, title=title, remark=VIRTUAL_REMARK, most=TREND_RUNS)


def _assemble(
    work: Path, runs: Sequence[ShownRun], history: Path, trend: Trend | None, *, single_file: bool
) -> Path:
    """Have Allure make the test report while the other pages are made; the trend page waits for its data."""
    earlier = points.lend(history / "allure.jsonl", work / "allure.jsonl", _lines(runs))
    shorten = shortener(runs)
    results = copy_results(work / "results", runs, shorten)
    for run in runs:
        draw_past(work / "results" / run.run_id, run, earlier)
    with generating(_config(work, runs, single_file=single_file), results, work):
        trend = trend or _trend(runs, history)
        write_trend(work / TREND_FILE, trend.data)
        pages = _own_pages(work / "pages", runs, trend, shorten)
    site = work / REPORT
    _tidy(site)
    _seal(site / "tests" / "index.html")
    (work / TREND_FILE).rename(site / "trend" / TREND_FILE)
    for page in pages.iterdir():
        page.rename(site / page.name)
    return site


def _own_pages(folder: Path, runs: Sequence[ShownRun], trend: Trend, shorten: Shorten) -> Path:
    """Write what Allure has no part in: the first page, the runs' files."""
    copy_raw(folder / "runs", runs, shorten)
    page = render_landing(
        runs,
        past=trend.measured_runs,
        raw=RAW_FILES,
        trend=trend.data,
        nights=trend.nights,
    )
    (folder / "index.html").write_bytes(shorten(page.encode()))
    return folder


def _config(work: Path, runs: Sequence[ShownRun], *, single_file: bool) -> Mapping[str, Any]:
    """Return Allure's configuration: the test report and our trend page, each in a folder of its own."""
    title = title_of(runs)
    tests = {
        "reportName": title,
        "singleFile": single_file,
        "reportLanguage": "en",
        "groupBy": [],  # rack, board and bench, as the results name them
        "sections": ["charts"],
        "charts": _CHARTS,
        "defaultSortBy": "status,asc",  # what failed stands first
    }
    trend = {"data": str(work / TREND_FILE)}
    return {
        "name": title,
        "output": str(work / REPORT),
        "historyPath": str(work / "allure.jsonl"),
        "hideLabels": _SAID_ELSEWHERE,
        "categories": CATEGORIES,
        "performance": {
            "metrics": {item.series_id: _UNCOLOURED for run in runs for item in run.verdict.series}
        },
        "plugins": {
            "tests": {"import": "@allurereport/plugin-awesome", "options": tests},
            "trend": {"import": str(TREND), "options": trend},
        },
    }


def _lines(runs: Sequence[ShownRun]) -> list[Mapping[str, Any]]:
    return [run.line for run in runs]


def _tidy(site: Path) -> None:
    """Remove what Allure writes for services that this project does not use."""
    for path in site.iterdir():
        if path.is_file():
            path.unlink()


def _seal(page: Path) -> None:
    sealed = outside.seal(take_apart(page.read_text(encoding="utf-8"), page.parent))
    page.write_text(outside.add_after("body", _WAY_BACK, sealed), encoding="utf-8")


def _replace(report: Path, site: Path, work: Path) -> None:
    """Put the new report where the old one is; the old one goes with the working folder."""
    old = work / "old"
    try:
        if report.exists():
            report.rename(old)
        site.rename(report)
    finally:  # also where a signal came between the two
        if old.exists() and not report.exists():
            old.rename(report)
