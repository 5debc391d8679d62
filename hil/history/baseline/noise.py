# SPDX-License-Identifier: Apache-2.0
"""What a series' history says of its noise on a board: how much boots differ, and how much sessions do.

Analysis of variance of one way, sessions being the groups: boots differ by what is left within sessions, and
sessions by what their means differ more than their boots explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hil.base.numeric import np

MOST_SESSIONS = 60
FEWEST_SESSIONS = 5  # of two boots or more, before variances are spoken of


@dataclass(frozen=True)
class SeriesNoise:
    """One series on one board, on the metric's scale: NaN, and 0 sessions, where the history says nothing.

    ``mean`` is that of the epoch's sessions, each counting alike.
    """

    boot_variance: float = math.nan
    session_variance: float = math.nan
    sessions: int = 0
    mean: float = math.nan


def noise_of(sessions: np.ndarray, values: np.ndarray, epoch: np.ndarray) -> SeriesNoise:
    """Work out the noise of one series from its boots, in order of time.

    ``sessions`` is each boot's session, ``values`` its value on the metric's scale, larger is worse;
    ``epoch`` marks those of the accepted epoch, which alone give the mean. Boots that are not finite do not
    count. The variances are from the last MOST_SESSIONS sessions, of those with two boots or more.
    """
    values, sessions, epoch = (
        np.asarray(values, dtype=float),
        np.asarray(sessions),
        np.asarray(epoch, dtype=bool),
    )
    finite = np.isfinite(values)
    order = list(dict.fromkeys(sessions[finite].tolist()))
    groups = [values[finite & (sessions == session)] for session in order]
    means = [values[finite & epoch & (sessions == session)] for session in order]
    level = [float(group.mean()) for group in means if len(group)]
    repeated = [group for group in groups[-MOST_SESSIONS:] if len(group) > 1]
    boot, between = _variances(repeated)
    return SeriesNoise(boot, between, len(repeated), float(np.mean(level)) if level else np.nan)


def _variances(groups: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the variance of boots and that of sessions; NaN where too few tell it."""
    if not groups:
        return np.nan, np.nan
    freedom = sum(len(group) - 1 for group in groups)
    boot = math.fsum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
    if len(groups) < 2:
        return boot, np.nan
    spread = float(np.var([group.mean() for group in groups], ddof=1))
    return boot, max(0.0, spread - boot * float(np.mean([1.0 / len(group) for group in groups])))
