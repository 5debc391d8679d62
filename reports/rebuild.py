# SPDX-License-Identifier: Apache-2.0
"""Reports from what is on disk: a run's own files written again, the site, a run beside a published study.

A defect of ours is the rig's fault: `hil` says so by its exit code, for 1 would accuse the firmware.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from hil.base.errors import ConfigError, HilError, RigError
from hil.history.from_run import keep_run
from hil.reports import allure, plain
from hil.reports.finish import sentence_of, with_changes, write_summary
from hil.reports.site import build_site, trend_for
from hil.reports.stored import judged_runs
from hil.reports.studies.build import files_of, reproduce
from hil.reports.studies.loader import load_study
from hil.reports.studies.text import print_documents
from hil.store import JudgedRun, RunDirectory, read_judged_run, read_run, require_verdict
from hil.store.files import short_path


def write_run(run: JudgedRun) -> None:
    """Write a judged run's summary.md, allure-results and plain files again."""
    with _owned(f"{run.path}"):
        allure.complete_results(run)
        plain.write_plain(run)
        write_summary(run)


def build_report(
    runs: Sequence[Path],
    *,
    legs: Path | None,
    out: Path,
    history_folder: Path,
    single_file: bool,
    append: bool,
) -> None:
    """Build ``out``/report of ``runs``, and of each judged run of ``legs``; by default of the latest run."""
    of_legs, left_out = judged_runs(legs) if legs else ([], [])
    print("".join(f"warning: {sentence}\n" for sentence in left_out), end="", file=sys.stderr)
    named = runs or ([] if of_legs else [RunDirectory.latest(out).path])
    chosen = [*map(read_judged_run, dict.fromkeys(path.resolve() for path in named)), *of_legs]
    with _owned(" ".join(str(run.path) for run in chosen)):
        for run in chosen:
            allure.complete_results(run)
            plain.write_plain(run)
            if append:
                _keep(run, history_folder)
        trend = trend_for(chosen, history_folder)
        noted = [with_changes(run, trend) for run in chosen]
        index = build_site(
            out, noted, history=history_folder, single_file=single_file, append=append, trend=trend
        )
    print(short_path(index))


def show_study(run_folder: Path, study: str, studies: Path, *, report: bool) -> None:
    """Set a run beside a study, in its folder and on the terminal; ``report`` says whether to build one."""
    run = read_run(run_folder)
    with _owned(f"{run.path}"):
        print_documents(reproduce(run, load_study(study, studies)), Console(highlight=False))
        print(*(short_path(run.path / name) for name in files_of(study)), sep="\n")
        if not report:
            return
        try:
            print(short_path(build_site(run.path.parent, [require_verdict(run)], keep_newer=True)))
        except HilError as error:  # the study is in the run's folder all the same
            print(f"warning: {error}", file=sys.stderr)


def _keep(run: JudgedRun, history: Path) -> None:
    """Enter a run into the history; a damaged file of it costs that, and not the report."""
    try:
        keep_run(run, history)
    except ConfigError as error:
        print(f"warning: history: {error}", file=sys.stderr)


@contextmanager
def _owned(what: str) -> Iterator[None]:
    """Raise RigError instead of what nobody owns: a defect of the reports themselves."""
    try:
        yield
    except HilError:
        raise
    except Exception as error:
        raise RigError(f"The reports of {what} were not written: {sentence_of(error)}") from error
