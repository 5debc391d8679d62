# SPDX-License-Identifier: Apache-2.0
"""How commands end a run that is judged: its screen and its exit status."""

from __future__ import annotations

from hil.base.errors import ExitCode
from hil.store import JudgedRun
from hil.store.files import short_path
from hil.store.reported import Reported
from hil.store.verdicts import NEUTRAL_STATUS, status_of


def show(
    run: JudgedRun, reported: Reported | None = None, *, undecided: int | None = None, verbose: bool = False
) -> int:
    """Print the last screen of a run; return its exit status.

    ``reported`` is what became of the reports, the run's own unless given. ``undecided`` is the status of a
    run that is undecided where no policy makes that a failure; None: the verdict's.
    """
    from rich.console import Console

    from hil.reports.terminal import render_screen

    code = status_of(run.info, run.verdict)
    is_other = undecided is not None and code == ExitCode.UNDECIDED and run.verdict.is_neutral
    status = int(undecided or 0) if is_other else int(code)
    render_screen(
        run.info,
        run.verdict,
        run.records,
        run_path=short_path(run.path),
        console=Console(highlight=False),
        reported=run.reported if reported is None else reported,
        status=NEUTRAL_STATUS if status != code else "",
        verbose=verbose,
    )
    return status
