# SPDX-License-Identifier: Apache-2.0
"""What follows a verdict: one report after the other. None of them can change it; what fails is a warning."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from hil.base.errors import HilError
from hil.boards.quarantine import Watch
from hil.history import history_of
from hil.history.files import read_past
from hil.history.from_run import figures_of, keep_run
from hil.reports import allure, plain, pushgateway, site
from hil.reports.crashes import crashes_in
from hil.reports.studies import build as reproduction
from hil.reports.studies.document import Document
from hil.reports.summary import render_markdown
from hil.reports.trend import Trend
from hil.reports.trend.happenings import changes_beside
from hil.store import JudgedRun, Reported, RunDirectory
from hil.store.files import short_path
from hil.store.run_info import is_unchanged

PUSH_TIMEOUT_S = 5.0

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ReportOptions:
    """Which reports are wanted; ``pushgateway`` is a URL or empty, ``site`` whether to build OUT/report.

    ``watch`` puts boards into quarantine that the rig fails on again and again; None where only people do.
    """

    out: Path
    pushgateway: str = ""
    site: bool = True
    watch: Watch | None = None


@dataclass
class Reporting:
    """What has become of the reports: where the site is, if it was built, and what is worth knowing of it.

    ``documents`` set the run beside the published study whose suite it measured, a board each. ``changes``
    are the words of what is open in the nights that the run is one of.
    """

    report: str | None = None
    documents: Sequence[Document] = ()
    changes: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)

    def noted(self) -> Reported:
        """Return what the run's folder says of it."""
        warnings, changes = tuple(self.warnings), tuple(self.changes)
        return Reported(report=self.report or "", warnings=warnings, changes=changes)

    def attempt(self, what: str, step: Callable[[], _Result]) -> _Result | None:
        """Return what ``step`` returns; whatever it raises is a warning, for the verdict stands."""
        try:
            return step()
        except Exception as error:
            self.warnings.append(f"{what}: {sentence_of(error)}")
            return None


def sentence_of(error: Exception) -> str:
    """Return what to tell a person of an error, a foreign one included."""
    if isinstance(error, HilError):
        return str(error)
    return f"internal error, {type(error).__name__}: {error}."


def finish(run: JudgedRun, options: ReportOptions, *, say: Callable[[str], None]) -> Reporting:
    """Complete and publish what a judged run left; note in its folder where the report is and what failed.

    The summary is there before anything else, for an interrupt may end this at any time.
    """
    done = Reporting()
    _note(run, done)
    done.attempt("Allure results", lambda: allure.complete_results(run))
    done.attempt("plain files", lambda: plain.write_plain(run))
    documents = done.attempt("reproduction", lambda: reproduction.reproduce_suite(run))
    done.documents = documents or ()
    done.attempt("history", lambda: keep_run(run, history_of(options.out)))
    if options.watch:  # a board that goes into quarantine is worth knowing
        watch = options.watch
        done.warnings += done.attempt("quarantine", lambda: watch.look(figures_of(run))) or []
    if options.pushgateway and not is_unchanged(run.info):  # a false block is nothing to be woken for
        done.attempt("Pushgateway", lambda: _push(options.pushgateway, run, done))
    trend = None
    if options.site or _has_nights(run, options):
        say("Looking for changes in the history")
        trend = done.attempt("trend", lambda: site.trend_for([run], history_of(options.out)))
    if trend:
        done.changes = changes_beside(trend.data["events"], run.info)
    anew = done.warnings or done.changes
    noted = _note(run, done) if anew else run  # the report shows the summary
    if options.site:
        say("Building the report")
        build = functools.partial(site.build_site, options.out, [noted], keep_newer=True, trend=trend)
        index = done.attempt("report", build)
        done.report = short_path(index) if index else None
        _note(noted, done)
    return done


def _has_nights(run: JudgedRun, options: ReportOptions) -> bool:
    """Return whether boot values of the run's rack are at hand; beside a pull request no change is told."""
    if run.info.trigger == "pr":
        return False
    past = read_past(history_of(options.out), racks=[run.info.rack])
    return any(one.boot_values for one in past.runs)


def _push(url: str, run: JudgedRun, done: Reporting) -> None:
    warning = pushgateway.push_run(url, run, timeout_s=PUSH_TIMEOUT_S)
    done.warnings += [warning] if warning else []


def _note(run: JudgedRun, done: Reporting) -> JudgedRun:
    """Write what has become of the reports, and the summary; return the run with it.

    What fails is a warning that only the caller can show.
    """
    noted = replace(run, reported=done.noted())
    done.attempt("summary", lambda: _write_reported(noted))
    return noted


def with_changes(run: JudgedRun, trend: Trend) -> JudgedRun:
    """Note what a trend has open beside a run in its folder and summary, where they lack it.

    A night in CI is measured where no history is; whoever reports it there has one. Raises RigError where the
    disk does not take it.
    """
    changes = tuple(changes_beside(trend.data["events"], run.info))
    if not changes or changes == run.reported.changes:
        return run
    noted = replace(run, reported=msgspec.structs.replace(run.reported, changes=changes))
    _write_reported(noted)
    return noted


def _write_reported(run: JudgedRun) -> None:
    RunDirectory(run.path).write_reported(run.reported)
    write_summary(run)


def write_summary(run: JudgedRun) -> None:
    """Write the run's summary.md. Raises RigError where the disk does not take it."""
    markdown = render_markdown(
        run.info,
        run.verdict,
        run.records,
        run_path=short_path(run.path),
        crashes=crashes_in(run.path),
        reported=run.reported,
    )
    RunDirectory(run.path).write_summary(markdown)
