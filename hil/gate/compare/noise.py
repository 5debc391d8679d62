# SPDX-License-Identifier: Apache-2.0
"""What a series' history says of its noise on a board: how much boots differ, and how much sessions do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hil.gate.compare.boots import CLIP, medians, summarise
from hil.gate.compare.design import Noise

MOST_SESSIONS = 60
_MOST_CLIPPED = 0.15  # more boots beyond CLIP deviations than this are no bad boots but a second mode
_COARSE = 1.5  # the deviation from medians of few boots is too small
_NORMAL_MEDIAN = 1.5708  # variance of a median of normal values, times their number


@dataclass(frozen=True)
class SeriesNoise:
    """One series on one board, as in Noise. All NaN, and 0 sessions, where the history says nothing."""

    boot_variance: float = np.nan
    session_variance: float = np.nan
    deviation: float = np.nan
    sessions: int = 0
    mean: float = np.nan
    epoch_sessions: int = 0
    epoch_boots: int = 0
    plain_variance: float = np.nan
    freedom: float = 0.0


def noise_of(sessions: np.ndarray, values: np.ndarray, epoch: np.ndarray) -> SeriesNoise:
    """Work out the noise of one series from its boots, in order of time.

    ``sessions`` is each boot's session, ``values`` its value on the metric's scale, larger is worse;
    ``epoch`` marks those of the accepted epoch, which alone give the mean. Boots that are not finite do not
    count. The variances are from the last MOST_SESSIONS sessions, of those with two boots or more.
    """
    values = np.asarray(values, dtype=float)
    finite = np.isfinite(values)
    if not finite.any():
        return SeriesNoise()
    sessions, values, epoch = (
        np.asarray(sessions)[finite],
        values[finite],
        np.asarray(epoch, dtype=bool)[finite],
    )
    order = list(dict.fromkeys(sessions.tolist()))
    table = _table(order, sessions, values)
    of_epoch = _table(order, sessions, np.where(epoch, values, np.nan))
    found = noise_of_table(table[np.newaxis, -MOST_SESSIONS:], of_epoch[np.newaxis])
    values_of: dict[str, Any] = {name: _plain(name, value[0]) for name, value in found.items()}
    return SeriesNoise(**values_of)


def noise_of_series(rows: Sequence[Sequence[SeriesNoise]]) -> Noise:
    """Put series together: one list a comparison, of one element a board."""
    names = SeriesNoise.__dataclass_fields__
    return Noise(**{
        name: np.array([[float(getattr(one, name)) for one in row] for row in rows]) for name in names
    })  # fmt: skip


def noise_of_arrays(boots: np.ndarray, epoch: bool = True) -> Noise:
    """Work out the noise of histories (…, H, k), NaN where a boot is missing; all ``epoch``, or nothing."""
    shape = boots.shape[:-2]
    table = boots.reshape(-1, *boots.shape[-2:])
    of_epoch = table if epoch else np.full_like(table, np.nan)
    found = noise_of_table(table[:, -MOST_SESSIONS:], of_epoch)
    return Noise(**{name: value.reshape(shape) for name, value in found.items()})


def noise_of_table(table: np.ndarray, epoch: np.ndarray) -> dict[str, np.ndarray]:
    """Work out the noise of N series: ``table`` (N, H, k) for the variances, ``epoch`` alike for the mean."""
    count = (~np.isnan(table)).sum(axis=2)
    repeated = count >= 2
    table = np.where(repeated[:, :, np.newaxis], table, np.nan)
    sessions = repeated.sum(axis=1)
    residuals, deviation, share = _residuals(table, count)
    clipped = _influence_variance(residuals, deviation, share)
    there = (~np.isnan(residuals)).sum(axis=1)
    plain = np.nansum(residuals**2, axis=1) / np.maximum(there, 1)
    session = _session_variance(table, count, deviation, clipped)
    mean, epoch_sessions, epoch_boots = _epoch_mean(epoch, deviation)
    nothing = sessions == 0
    return {
        "boot_variance": np.where(nothing, np.nan, clipped),
        "session_variance": np.where(sessions < 2, np.nan, session),
        "deviation": np.where(nothing, np.nan, deviation),
        "sessions": sessions.astype(float),
        "mean": mean,
        "epoch_sessions": epoch_sessions.astype(float),
        "epoch_boots": epoch_boots.astype(float),
        "plain_variance": np.where(nothing, np.nan, np.maximum(plain, clipped)),
        "freedom": np.where(repeated, count - 1, 0).sum(axis=1).astype(float),
    }


def _table(order: list[object], sessions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return boots as (sessions, boots), NaN where a session has fewer."""
    rows = [values[sessions == session] for session in order]
    table = np.full((len(rows), max((len(row) for row in rows), default=1)), np.nan)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def _residuals(table: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what boots differ by from their session's level (N, boots), how much, and the share beyond CLIP.

    Each is scaled for how few boots the level is of. A first deviation, from the sessions' medians, clips bad
    boots out of the levels. Where too many boots lie beyond it for bad ones, they have modes: then levels are
    plain means, and the deviation is the plain one.
    """
    first = _COARSE * _robust(_scaled(table, count, medians(table)))
    levels = summarise(table, np.broadcast_to(first[:, np.newaxis], count.shape)).mean
    residuals = _scaled(table, count, levels)
    deviation = _robust(residuals)
    modes = _beyond(residuals, deviation) > _MOST_CLIPPED
    plain = _scaled(table, count, np.nansum(table, axis=2) / np.maximum(count, 1))
    residuals = np.where(modes[:, np.newaxis], plain, residuals)
    there = np.maximum((~np.isnan(residuals)).sum(axis=1), 1)
    deviation = np.where(modes, np.sqrt(np.nansum(residuals**2, axis=1) / there), deviation)
    return residuals, deviation, _beyond(residuals, deviation)


def _scaled(table: np.ndarray, count: np.ndarray, levels: np.ndarray) -> np.ndarray:
    boots = np.maximum(count, 1)
    scale = np.sqrt(boots / np.maximum(boots - 1.0, 1.0))
    off = (table - levels[:, :, np.newaxis]) * scale[:, :, np.newaxis]
    return np.asarray(off.reshape(len(table), -1))


def _robust(residuals: np.ndarray) -> np.ndarray:
    return np.nan_to_num(1.4826 * medians(np.abs(residuals)))


def _beyond(residuals: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    there = np.maximum((~np.isnan(residuals)).sum(axis=1), 1)
    return np.asarray((np.abs(residuals) > CLIP * deviation[:, np.newaxis]).sum(axis=1) / there)


def _influence_variance(residuals: np.ndarray, deviation: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the variance that a boot has in a long winsorised mean around the median.

    The mean of clipped residuals moves with the median by the ``share`` that is clipped: the variance of both
    and twice their covariance are from the influence functions (Huber 1981), the median's as of normal boots.
    """
    there = np.maximum((~np.isnan(residuals)).sum(axis=1), 1)
    limit = CLIP * deviation[:, np.newaxis]
    clipped = np.clip(residuals, -limit, limit)
    square = np.nansum(clipped**2, axis=1) / there
    size = np.nansum(np.abs(clipped), axis=1) / there
    median = np.sqrt(_NORMAL_MEDIAN) * deviation
    return np.asarray(square + 2.0 * share * size * median + (share * median) ** 2)


def _session_variance(
    table: np.ndarray, count: np.ndarray, deviation: np.ndarray, clipped: np.ndarray
) -> np.ndarray:
    """Return the variance of sessions' levels: that of their means, without what their boots contribute."""
    means = summarise(table, np.broadcast_to(deviation[:, np.newaxis], count.shape)).mean
    sessions = np.maximum((count >= 2).sum(axis=1), 1)
    centre = np.nansum(means, axis=1) / sessions
    spread = np.nansum((means - centre[:, np.newaxis]) ** 2, axis=1) / np.maximum(sessions - 1, 1)
    of_boots = clipped * np.where(count >= 2, 1.0 / np.maximum(count, 1), 0.0).sum(axis=1) / sessions
    return np.asarray(np.maximum(spread - of_boots, 0.0))


def _epoch_mean(epoch: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of the epoch's sessions, each winsorised over its boots, how many, and their boots."""
    limit = np.broadcast_to(np.nan_to_num(deviation)[:, np.newaxis], epoch.shape[:2])
    found = summarise(epoch, limit)
    sessions = (found.count > 0).sum(axis=1)
    mean = np.nansum(np.where(found.count > 0, found.mean, 0.0), axis=1) / np.maximum(sessions, 1)
    return np.where(sessions > 0, mean, np.nan), sessions, found.count.sum(axis=1)


def _plain(name: str, value: float) -> float | int:
    return int(value) if name in ("sessions", "epoch_sessions", "epoch_boots") else float(value)
