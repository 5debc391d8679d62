# SPDX-License-Identifier: Apache-2.0
"""The newest night as a run's folder: journal, run.json, verdict, and the reports that follow a verdict."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import hil
from hil.gate import judge
from hil.history.from_run import add_run
from hil.model import Comparison
from hil.reports.finish import ReportOptions, finish
from hil.store import RunDirectory, RunInfo, add_verdict, read_measured
from hil.store.run_info import CiRun, ImageInfo, RunBoard, Sources
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
    directory = RunDirectory.create(out, _info(night))
    for comparison in _comparisons(night, found):
        directory.append(comparison)
    for boot in range(len(night.roles)):
        for turn, one in enumerate(found):
            record = full_record(night, one, boot)
            directory.append(replace(record, started_utc=_later(night.started_utc, 120 * boot + 4 * turn)))
    directory.keep([limits / f"{bench}.yaml" for bench in sorted(thresholds)], "thresholds")
    stored = read_measured(directory.path)
    run = add_verdict(stored, judge(stored.journal.entries, thresholds))
    done = finish(run, ReportOptions(out, site=False), say=lambda _sentence: None)
    add_run(run, out / "history")
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


def _info(night: Night) -> RunInfo:
    return RunInfo(
        run_id=night.run_id,
        started_utc=night.started_utc,
        lease_acquired_utc=_later(night.started_utc, 2),
        lease_released_utc=_later(night.started_utc, _HELD_S),
        rack=night.rack.name,
        suite=SUITE,
        trigger="nightly",
        argv=(),
        user="",
        host="",
        profile=AIR,
        git=Sources(commit=night.commit, dirty=False, **night.commit_words),
        tool=Sources("", dirty=False),
        versions={"hil": hil.__version__},
        ci=CiRun(),
        boards=tuple(RunBoard(id=one.id, target=one.target, kind="virtual") for one in night.rack.boards),
        plan={},
        firmware={name: ImageInfo(sha256=night.image("candidate", name)) for name in night.rack.targets},
        noise=night.noise.info(),
    )


def _later(time_utc: str, seconds: float) -> str:
    moment = datetime.datetime.fromisoformat(time_utc) + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
