# SPDX-License-Identifier: Apache-2.0
"""``hil rack check --golden``: firmware that is known to be good on each free board, and what follows."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.finding import Finding
from hil.boards.health.golden import findings, judge_boards, line_of
from hil.boards.health.lines import HEALTH_FILE
from hil.boards.health.quarantine import BY_CHECK, BY_ITSELF, describe, folder_of, read_quarantine
from hil.boards.health.types import RunHealth
from hil.boards.lease import lock_dir, read_holder
from hil.boards.rack import Rack
from hil.history import history_of
from hil.store import RunDirectory
from hil.store.files import short_path

KEPT = 14  # folders with logs: two weeks of mornings
PUSH_TIMEOUT_S = 15.0


def golden_findings(
    rack: Rack, boards: Sequence[str], thresholds: Path, out: Path, *, captures: bool, pushgateway: str
) -> list[Finding]:
    """Check the free boards among those named, all where none is; enter the rack's health, push, and return
    what was found.

    Raises as check_golden().
    """
    from hil.fixtures.board import ConsoleFactory
    from hil.reports.history import append_health_line
    from hil.run.golden import FOLDER, check_golden
    from hil.thresholds import load_project

    if rack.golden is None and not rack.is_virtual:
        raise ConfigError(
            f"{rack.path} names no golden firmware, so there is nothing to check its boards with.",
            next_step="make it (hil build --target TARGET --bundle DIR), and name it there: golden: DIR.",
        )
    folder = folder_of(rack, out)
    chosen, left_out = free_boards(rack, boards, folder, out)
    if not chosen:
        return left_out
    with redirect_stdout(io.StringIO()):  # esptool tells each reset
        run = check_golden(
            rack,
            chosen,
            load_project(thresholds),
            out=out,
            consoles=ConsoleFactory(),
            say=lambda sentence: click.echo(f"     {sentence}", err=True),
            captures=captures,
        )
    found = [*left_out, *findings(run.checked)]
    found += [
        Finding("quarantine", ok=True, sentence=f"{said}.")
        for said in judge_boards(rack, folder, run.checked)
    ]
    line = line_of(run.run_id, rack, run.checked, read_quarantine(folder), held_s=run.held_s)
    append_health_line(history_of(out) / HEALTH_FILE, line)
    found.append(Finding("golden logs", ok=True, sentence=short_path(run.path)))
    for old in RunDirectory.list(out / FOLDER)[:-KEPT]:
        shutil.rmtree(old.path, ignore_errors=True)
    return [*found, *_pushed(pushgateway, line, run.path.parent)]


def free_boards(
    rack: Rack, boards: Sequence[str], folder: Path, out: Path
) -> tuple[list[str], list[Finding]]:
    """Return the boards that are checked, and a word on each other one.

    What the rack's own rule keeps out is checked too, as its keeper wants to know whether it passes.
    """
    kept, locks = read_quarantine(folder), lock_dir(rack, out)
    chosen, left_out = [], []
    for board in rack.select(boards):
        holder, quarantine = read_holder(locks, board.id), kept.get(board.id)
        if quarantine and quarantine.who not in (BY_CHECK, BY_ITSELF):
            why = f"left alone, for it is {describe(quarantine)}"
        elif holder:
            why = f"left alone, for it is in use by {holder.describe()}"
        else:
            chosen.append(board.id)
            continue
        left_out.append(Finding(f"golden {board.id}", ok=True, sentence=why))
    return chosen, left_out


def _pushed(url: str, line: RunHealth, folder: Path) -> list[Finding]:
    """Push what was found; a gateway that does not take it makes no rack unfit."""
    if not url:
        return []
    from hil.reports.metrics import golden_groups
    from hil.reports.pushgateway import push

    pushed = push(url, folder, golden_groups(line), timeout_s=PUSH_TIMEOUT_S)
    said = " ".join(filter(None, [pushed.failure, *pushed.warnings]))
    return [Finding("Pushgateway", ok=not pushed.failure, sentence=said or "has the figures", needed=False)]
