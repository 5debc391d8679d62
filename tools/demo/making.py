# SPDX-License-Identifier: Apache-2.0
"""Writes a whole demonstration below a folder, through the readers and writers of the product."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from hil.history import keep
from hil.history.files import read_past
from hil.history.from_run import figures_of
from hil.reports.history import lines_of
from hil.store import RunDirectory, read_judged_run
from hil.thresholds import Thresholds, load
from tools.demo.allure_past import points
from tools.demo.newest import store
from tools.demo.nights import Night, measured
from tools.demo.past import summary_of
from tools.demo.plan import NEWEST, RACKS, Plan
from tools.demo.samples import CASES, cases_of

LIMITS = Path(__file__).resolve().parents[2] / "thresholds"
_OURS = ("history", "report", "latest")


@dataclass(frozen=True)
class Demo:
    """``runs`` are the folders of the newest night, a rack each; ``warnings`` what their reports lack."""

    out: Path
    runs: tuple[Path, ...]
    thresholds: dict[str, Thresholds]
    warnings: tuple[str, ...]

    @property
    def history(self) -> Path:
        return self.out / "history"


def make(out: Path, plan: Plan) -> Demo:
    """Write histories and runs; what an earlier demonstration left below ``out`` goes.

    Raises ConfigError, RigError as the product's writers do.
    """
    _clear(out)
    thresholds = {bench: load(bench, LIMITS, today=NEWEST) for bench in CASES}
    cases = cases_of(thresholds)
    runs = []
    warnings: list[str] = []
    for rack in RACKS:
        newest = Night(plan, rack, plan.nights - 1)
        run, said = store(out, newest, list(measured(newest, cases)), thresholds, LIMITS)
        runs.append(run.path)
        warnings += said
        usual = figures_of(read_judged_run(run.path))
        for number in range(plan.nights - 1):
            night = Night(plan, rack, number)
            keep(out / "history", summary_of(night, list(measured(night, cases)), thresholds, usual))
    newest = [path.name for path in runs]
    past = points(runs, lines_of(run for run in read_past(out / "history").runs if run.run_id not in newest))
    (out / "history" / "allure.jsonl").write_text("".join(f"{json.dumps(point)}\n" for point in past))
    return Demo(out, tuple(runs), thresholds, tuple(warnings))


def _clear(out: Path) -> None:
    """Remove what an earlier demonstration left, and nothing else."""
    for run in RunDirectory.list(out):
        shutil.rmtree(run.path)
    for name in _OURS:
        path = out / name
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
