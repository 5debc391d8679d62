# SPDX-License-Identifier: Apache-2.0
"""The newest night as a run's folder: journal, run.json, verdict, and the reports that follow a verdict."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hil
from hil.gate import judge
from hil.history.from_run import add_run
from hil.model import Comparison
from hil.reports.finish import ReportOptions, finish
from hil.store import RunDirectory, read_run
from hil.thresholds import Thresholds
from tools.demo.nights import Measured, Night, full_record
from tools.demo.plan import AIR, SUITE

_HELD_S = 1500


def store(
    out: Path, night: Night, found: Sequence[Measured], thresholds: Mapping[str, Thresholds], limits: Path
) -> tuple[RunDirectory, tuple[str, ...]]:
    """Write, judge and report a night's run, and add it to the history; return it and what went wrong.

    ``limits`` is the folder of thresholds, of which the run keeps a copy.
    """
    directory = RunDirectory.create(out, night.run_id)
    for comparison in _comparisons(night, found):
        directory.append(comparison)
    for boot in range(len(night.roles)):
        for turn, one in enumerate(found):
            record = full_record(night, one, boot)
            directory.append(replace(record, started_utc=_later(night.started_utc, 120 * boot + 4 * turn)))
    directory.write_info(_info(night))
    directory.keep([limits / f"{bench}.yaml" for bench in sorted(thresholds)], "thresholds")
    directory.write_verdict(judge(directory.read().entries, thresholds))
    done = finish(directory, ReportOptions(out, site=False), say=lambda _sentence: None)
    add_run(read_run(directory.path), out / "history")
    return directory, tuple(done.warnings)


def _comparisons(night: Night, found: Sequence[Measured]) -> list[Comparison]:
    """Return what the night compares with its reference, an image each."""
    targets = dict.fromkeys(one.board.target for one in found)
    return [
        Comparison(
            run_id=night.run_id,
            rack=night.rack.name,
            image=target,
            target=target,
            boards=tuple(dict.fromkeys(one.board.id for one in found if one.board.target == target)),
            role="reference",
            candidate_sha256=night.image("candidate", target),
            other_sha256=night.image("reference", target),
            looks=((night.plan.boots, night.plan.boots),),
            cases=tuple(sorted({one.case.case_id for one in found})),
        )
        for target in targets
    ]


def _info(night: Night) -> dict[str, Any]:
    boards = [{"id": one.id, "kind": "virtual", "target": one.target} for one in night.rack.boards]
    return {
        "schema": 1,
        "run_id": night.run_id,
        "started_utc": night.started_utc,
        "lease_acquired_utc": _later(night.started_utc, 2),
        "lease_released_utc": _later(night.started_utc, _HELD_S),
        "rack": night.rack.name,
        "suite": SUITE,
        "trigger": "nightly",
        "profile": AIR,
        "git": {"commit": night.commit, "dirty": False, **night.commit_words},
        "versions": {"hil": hil.__version__},
        "boards": boards,
        "firmware": {target: {"sha256": night.image("candidate", target)} for target in night.rack.targets},
        "noise": dict(night.noise.info()),
    }


def _later(time_utc: str, seconds: float) -> str:
    moment = datetime.datetime.fromisoformat(time_utc) + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
