# SPDX-License-Identifier: Apache-2.0
"""``make bench-report``: how long reports take. Exits 1 where an aim is missed.

A year of nights (365 runs of each of two racks, eight boards, sixty series a board) is built and opened in
headless Chromium; a night of 10,000 results is built.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hil.reports.allure import complete_results
from hil.reports.site import build_site
from hil.store import read_judged_run
from tests.reports.browser import chromium, visit
from tests.tools.bench.figure import SHORT_PASS, Figure, fails, show, wide_console
from tests.tools.bench.large_reports import BOARDS, CASES, METRICS, RACKS, write_results, write_year

NIGHTS, RESULT_BOARDS, RESULT_CASES = 365, 20, 500
SHORT_NIGHTS, SHORT_CASES = 20, 5
YEAR_AIM_S, OPEN_AIM_S, RESULTS_AIM_S = 30.0, 2.0, 15.0
OPENINGS = 5
# from the request to the frame in which the first screen is painted
_SHOWN_MS = """() => new Promise(done => requestAnimationFrame(() => setTimeout(
    () => done(performance.now()))))"""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Timed:
    """What took how long, against its aim; 0 where there is none."""

    what: str
    seconds: float
    aim_s: float = 0.0

    @property
    def missed(self) -> bool:
        return 0.0 < self.aim_s < self.seconds


def year(nights: int) -> Figure:
    """Build and open the report of a year."""
    with tempfile.TemporaryDirectory(prefix="hil-year-") as name:
        out = Path(name)
        run = write_year(out, nights)
        complete_results(read_judged_run(run))
        build_s, index = _timed(lambda: build_site(out, [read_judged_run(run)]))
        page = index.parent / "trend" / "index.html"
        megabytes = page.stat().st_size / 1e6
        opened = sorted(_openings(page))
    times = [
        Timed("build the whole report", build_s, YEAR_AIM_S),
        Timed(f"open the trend page, median of {OPENINGS}", opened[len(opened) // 2], OPEN_AIM_S),
        Timed("open it, slowest", opened[-1]),
    ]
    points = nights * len(RACKS) * len(BOARDS) * CASES * len(METRICS)
    title = f"A year: {nights} nights, {len(RACKS) * len(BOARDS)} boards, {CASES * len(METRICS)} series each"
    return _figure(title, times, f"{points:,} points; the page is {megabytes:.1f} MB. No change is planted.")


def many_results(boards: int, cases: int) -> Figure:
    """Build the report of a night of ``boards`` × ``cases`` results."""
    with tempfile.TemporaryDirectory(prefix="hil-results-") as name:
        run = write_results(Path(name), boards, cases)
        results_s, _ = _timed(lambda: complete_results(read_judged_run(run)))
        build_s, _ = _timed(lambda: build_site(run.parent, [read_judged_run(run)], single_file=False))
    times = [
        Timed("write the Allure results of the run, once, when it is judged", results_s),
        Timed("build the report", build_s, RESULTS_AIM_S),
    ]
    return _figure(f"{boards * cases:,} results", times, "Many files, as for a web server.")


def _openings(page: Path) -> list[float]:
    """Return how long the page took to its first screen, in seconds, each time in a new context."""
    found = []
    with chromium() as browser:
        for _ in range(OPENINGS):
            with visit(browser, page.as_uri()) as seen:
                found.append(float(seen.page.evaluate(_SHOWN_MS)) / 1e3)
                if seen.complaints or seen.page.locator("main h2").count() == 0:
                    raise RuntimeError(f"{page} did not show its first screen: {seen.complaints}")
    return found


def _figure(title: str, times: list[Timed], note: str) -> Figure:
    rows = [(one.what, f"{one.seconds:.1f} s", f"< {one.aim_s:g} s" if one.aim_s else "") for one in times]
    missed = [f"{one.what} in {one.aim_s:g} s: {one.seconds:.1f} s" for one in times if one.missed]
    return Figure(title, ("", "measured", "aim"), rows, note, missed)


def _timed(action: Callable[[], _Result]) -> tuple[float, _Result]:
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.bench.report", description=__doc__)
    parser.add_argument("--nights", type=int, help=f"how many ({NIGHTS})")
    parser.add_argument("--results", type=int, help=f"how many ({RESULT_BOARDS * RESULT_CASES})")
    parser.add_argument("--short", action="store_true", help="small reports: whether it works, not for docs")
    options = parser.parse_args(arguments)
    nights, cases = (SHORT_NIGHTS, SHORT_CASES) if options.short else (NIGHTS, RESULT_CASES)
    console = wide_console()
    if options.short:
        console.print(f"{SHORT_PASS}\n")
    results = options.results or RESULT_BOARDS * cases
    figures = [year(options.nights or nights), many_results(RESULT_BOARDS, results // RESULT_BOARDS)]
    for figure in figures:
        show(console, figure)
    return 1 if any(fails(figure, short=options.short) for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
