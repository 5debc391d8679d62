# SPDX-License-Identifier: Apache-2.0
"""``make bench-report``: how long reports take. Exits 1 where an aim is missed.

A year of nights (365 runs of each of two racks, eight boards, sixty series a board) is built and opened in
headless Chromium; a night of 10,000 results is built; Allure's own page of 160 tests with their charts and
consoles is opened. The aims are ratios of processor time, so that they hold on a busy machine and on another
machine: a build beside a fixed work with JSON, an opened page beside an empty page.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Browser

from hil.reports.allure import complete_results
from hil.reports.site import build_site
from hil.store import read_judged_run
from tests.reports.browser import chromium, visit
from tools.bench.figure import SHORT_PASS, Figure, fails, show, wide_console
from tools.bench.large_reports import BOARDS, CASES, METRICS, RACKS, write_results, write_year

NIGHTS, RESULT_BOARDS, RESULT_CASES = 365, 20, 500
SHORT_NIGHTS, SHORT_CASES = 20, 5
PAGE_BOARDS, PAGE_CASES = 8, 20  # 160 tests
YEAR_AIM, RESULTS_AIM = 36.0, 27.0  # times a fixed work with JSON
OPEN_AIM, PAGE_AIM = 6.0, 12.0  # times what opening an empty page takes
JSON_TIMES, JSON_NUMBERS = 5, [number / 7 for number in range(200_000)]
OPENINGS = 5
PAGE_ROWS = 1000  # samples of a test
_TICKS_HZ = os.sysconf("SC_CLK_TCK")
# until the frame in which the first screen is painted
_SHOWN = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Timed:
    """How long something took, and how many times the processor time of ``unit_s``; an aim of 0 is none.

    ``load`` is the mean number of processes that were running or ready to (the last minute's).
    """

    what: str
    wall_s: float
    processor_s: float
    load: float
    unit_s: float
    aim: float = 0.0

    @property
    def ratio(self) -> float:
        return self.processor_s / self.unit_s

    @property
    def missed(self) -> bool:
        return 0.0 < self.aim < self.ratio


def year(nights: int) -> Figure:
    """Build and open the report of a year."""
    with tempfile.TemporaryDirectory(prefix="hil-year-") as name:
        out = Path(name)
        run = write_year(out, nights)
        complete_results(read_judged_run(run))
        built, index = _timed(
            "build the whole report", lambda: build_site(out, [read_judged_run(run)]), YEAR_AIM
        )
        page = index.parent / "trend" / "index.html"
        megabytes = page.stat().st_size / 1e6
        opened = _opened("the trend page", page, "main h2", OPEN_AIM)
    times = [built, opened]
    points = nights * len(RACKS) * len(BOARDS) * CASES * len(METRICS)
    title = f"A year: {nights} nights, {len(RACKS) * len(BOARDS)} boards, {CASES * len(METRICS)} series each"
    return _figure(title, times, f"{points:,} points; the page is {megabytes:.1f} MB. No change is planted.")


def many_results(boards: int, cases: int) -> Figure:
    """Build the report of a night of ``boards`` × ``cases`` results."""
    with tempfile.TemporaryDirectory(prefix="hil-results-") as name:
        run = write_results(Path(name), boards, cases)
        written, _ = _timed(
            "write the run's Allure results, once, when judged",
            lambda: complete_results(read_judged_run(run)),
        )
        built, _ = _timed(
            "build the report",
            lambda: build_site(run.parent, [read_judged_run(run)], single_file=False),
            RESULTS_AIM,
        )
    return _figure(f"{boards * cases:,} results", [written, built], "Many files, as for a web server.")


def allure_page(boards: int, cases: int) -> Figure:
    """Open Allure's own page of ``boards`` × ``cases`` tests, which have samples, charts and a console."""
    with tempfile.TemporaryDirectory(prefix="hil-page-") as name:
        run = write_results(Path(name), boards, cases, rows=PAGE_ROWS)
        complete_results(read_judged_run(run))
        index = build_site(run.parent, [read_judged_run(run)])
        page = index.parent / "tests" / "index.html"
        megabytes = page.stat().st_size / 1e6
        opened = _opened("the test report", page, "[data-testid=tree-section]", PAGE_AIM)
    return _figure(f"A page of {boards * cases} tests", [opened], f"One file of {megabytes:.1f} MB.")


def _opened(what: str, page: Path, first: str, aim: float) -> Timed:
    """Open a page OPENINGS times, each in a new context of one browser that is up; return the median.

    It is open when its first screen is painted and ``first`` is there. What opening costs the processor is
    what the browser's processes used meanwhile. An empty page is opened in turns with it.
    """
    found, empty = [], []
    with chromium() as browser, tempfile.NamedTemporaryFile(suffix=".html") as blank:
        blank.write(b"<!doctype html><title>Empty</title><main>")
        blank.flush()
        _open(browser, Path(blank.name).as_uri(), "main")
        for _ in range(OPENINGS):
            empty.append(_open(browser, Path(blank.name).as_uri(), "main"))
            found.append(_open(browser, page.as_uri(), first))
    wall_s, used_s = (statistics.median(column) for column in zip(*found, strict=True))
    unit_s = statistics.median(used for _, used in empty)
    return Timed(f"open {what}, median of {OPENINGS}", wall_s, used_s, _load(), unit_s, aim)


def _open(browser: Browser, address: str, first: str) -> tuple[float, float]:
    """Return wall and processor seconds until the first screen is painted. Raises RuntimeError."""
    before, began = _browser_s(), time.perf_counter()
    with visit(browser, address) as seen:
        seen.page.locator(first).first.wait_for(state="attached")
        seen.page.evaluate(_SHOWN)
        took = time.perf_counter() - began, _browser_s() - before
        if seen.complaints:
            raise RuntimeError(f"{address} did not show its first screen: {seen.complaints}")
    return took


def _browser_s() -> float:
    """Return the processor time that the processes below this one have used so far."""
    parents: dict[int, list[tuple[int, float]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        ticks = sum(map(int, fields[11:15]))  # utime, stime, and those of children that were waited for
        parents.setdefault(int(fields[1]), []).append((int(stat.parent.name), ticks / _TICKS_HZ))
    waiting, total_s = [os.getpid()], 0.0
    while waiting:
        for process, used_s in parents.get(waiting.pop(), ()):
            waiting.append(process)
            total_s += used_s
    return total_s


def _figure(title: str, times: list[Timed], note: str) -> Figure:
    rows = [
        (
            one.what,
            f"{one.ratio:.0f}",
            f"≤ {one.aim:g}" if one.aim else "",
            f"{one.processor_s:.1f} s",
            f"{one.wall_s:.1f} s",
            f"{one.load:.1f}",
        )
        for one in times
    ]
    missed = [f"{one.what}: ratio {one.ratio:.0f}, aim {one.aim:g}" for one in times if one.missed]
    return Figure(title, ("", "ratio", "aim", "processor", "wall", "load"), rows, note, missed)


def _timed(what: str, action: Callable[[], _Result], aim: float = 0.0) -> tuple[Timed, _Result]:
    unit_s = _json_s()
    began, used_s = time.perf_counter(), _own_s()
    result = action()
    return Timed(what, time.perf_counter() - began, _own_s() - used_s, _load(), unit_s, aim), result


def _json_s() -> float:
    """Return the processor time of a fixed work: numbers are written as JSON and read again."""
    before = _own_s()
    for _ in range(JSON_TIMES):
        json.loads(json.dumps(JSON_NUMBERS))
    return _own_s() - before


def _own_s() -> float:
    """Return the processor time of this process and of what it started and waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def _load() -> float:
    return os.getloadavg()[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.report", description=__doc__)
    parser.add_argument("--nights", type=int, help=f"how many ({NIGHTS})")
    parser.add_argument("--results", type=int, help=f"how many ({RESULT_BOARDS * RESULT_CASES})")
    parser.add_argument("--short", action="store_true", help="small reports: whether it works, not for docs")
    options = parser.parse_args(arguments)
    nights, cases = (SHORT_NIGHTS, SHORT_CASES) if options.short else (NIGHTS, RESULT_CASES)
    console = wide_console()
    if options.short:
        console.print(f"{SHORT_PASS}\n")
    results = options.results or RESULT_BOARDS * cases
    figures = [
        year(options.nights or nights),
        many_results(RESULT_BOARDS, results // RESULT_BOARDS),
        allure_page(PAGE_BOARDS, min(cases, PAGE_CASES)),
    ]
    for figure in figures:
        show(console, figure)
    return 1 if any(fails(figure, short=options.short) for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
