# SPDX-License-Identifier: Apache-2.0
"""What the gate knows of earlier runs: boot values, accepted epochs, and what they say of a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.gate.compare.design import Noise
from hil.gate.compare.environment import differing_condition
from hil.gate.compare.noise import SeriesNoise, noise_of, noise_of_series
from hil.gate.compare.scale import Scale
from hil.gate.compare.units import Unit
from hil.metrics.sessions import NO_HISTORY, History, Session
from hil.model import RunRecord, format_series_id
from hil.thresholds.baselines import NO_BASELINES, Baselines, Epoch


@dataclass(frozen=True)
class Past:
    """The history and the accepted epochs, as they were when the run began."""

    history: History = NO_HISTORY
    baselines: Baselines = NO_BASELINES


NO_PAST = Past()


@dataclass(frozen=True)
class Known:
    """What the history says of a unit. ``sessions`` are of the board with the fewest; ``note`` is why the
    history's mean has no weight, "" where it may have some; ``kappa`` widens the boundaries."""

    noise: Noise
    sessions: int
    note: str
    kappa: float


def known_of(past: Past, unit: Unit, boards: Sequence[str], scale: Scale) -> Known:
    """Return what is known of these boards, one column each, in their order."""
    epoch = past.baselines.epoch(unit.comparison.rack)
    found = [_of_board(past.history, epoch, unit, board, scale) for board in boards]
    series = [noise for noise, _ in found]
    notes = dict.fromkeys(note for _, note in found if note)
    silent = all(not noise.epoch_sessions for noise in series)
    return Known(
        noise=noise_of_series([series]),
        sessions=min((noise.sessions for noise in series), default=0),
        note=_why_no_mean(epoch, notes) if silent else "",
        kappa=epoch.kappa.get(unit.metric.name, 1.0) if epoch else 1.0,
    )


def _why_no_mean(epoch: Epoch | None, notes: Mapping[str, None]) -> str:
    return ", ".join(notes) or ("no epoch was accepted" if epoch is None else "the epoch has no boot of it")


def _of_board(
    history: History, epoch: Epoch | None, unit: Unit, board: str, scale: Scale
) -> tuple[SeriesNoise, str]:
    """Return the noise of one board's series, and why none of its sessions gives the mean."""
    comparison = unit.comparison
    series_id = format_series_id(comparison.rack, board, unit.case.case_id, unit.metric.name)
    series = history.series(series_id)
    if series is None or not len(series):
        return SeriesNoise(), "no history"
    today = unit.candidate[board]
    others = np.array([one.run_id != comparison.run_id for one in history.sessions], dtype=bool)
    kept = others[series.session]
    used = {index: history.sessions[index] for index in sorted(set(series.session.tolist()))}
    excluded = {index: _why_not_in_mean(one, epoch, board, today) for index, one in used.items()}
    rulers = {record.ruler_hash for record in today}
    why = [
        excluded[index] or ("" if str(ruler) in rulers else "another ruler than the history's")
        for index, ruler in zip(series.session.tolist(), series.ruler, strict=True)
    ]
    in_mean = np.array([not reason for reason in why], dtype=bool)
    values = np.array([_position(scale, value) for value in series.value], dtype=float)
    noise = noise_of(series.session[kept], values[kept], in_mean[kept])
    return noise, "" if noise.epoch_sessions else _telling(why)


def _telling(reasons: Sequence[str]) -> str:
    """Return the reason that an accepted session was not used, before what holds for any other session."""
    common = ("", "the epoch has no boot of it")
    return next((reason for reason in reversed(reasons) if reason not in common), common[1])


def _why_not_in_mean(session: Session, epoch: Epoch | None, board: str, today: Sequence[RunRecord]) -> str:
    if epoch is None:
        return "no epoch was accepted"
    if session.run_id not in epoch.sessions:
        return "the epoch has no boot of it"
    return differing_condition(session, board, today)


def _position(scale: Scale, value: float) -> float:
    """Return where a value of the history lies; NaN, which does not count, where it has no place."""
    return scale.position(float(value), 0.0)
