# SPDX-License-Identifier: Apache-2.0
"""What a baseline can promise: the noise of each series, and the smallest change that is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hil.gate.compare.looks import schedule
from hil.gate.compare.values import Design, smallest_effect
from hil.history.baseline.changes import GatedUnit, noise_of_unit, sessions_of, sessions_with
from hil.history.baseline.noise import FEWEST_SESSIONS, SeriesNoise
from hil.metrics.sessions import History
from hil.thresholds.baselines import Epoch

# Deviations of boots and of sessions, as shares of the value, up to which a rack is called so: half way (on
# the log scale) between the levels that docs/explain/gate-simulation.md simulates: 2 and 1 %, 4 and 3 %,
# 8 and 6 %.
QUIET = (math.sqrt(0.02 * 0.04), math.sqrt(0.01 * 0.03))
TYPICAL = (math.sqrt(0.04 * 0.08), math.sqrt(0.03 * 0.06))
CLASSES = ("quiet", "typical", "noisy")


@dataclass(frozen=True)
class Prospect:
    """A unit: each board's noise, and the smallest change that its comparisons would see.

    ``means`` are each board's on the metric's scale: of the epoch, of all sessions where there is none; NaN
    where it has no boot. ``effect`` is relative on the scale log, else in the unit; None where it cannot be
    said, ``note`` is why.
    """

    unit: GatedUnit
    noise: tuple[SeriesNoise, ...]
    means: tuple[float, ...]
    boots: tuple[int, ...]
    effect: float | None = None
    note: str = ""

    @property
    def sees_tolerance(self) -> bool:
        return self.effect is not None and self.effect <= self.unit.rule.tolerance


def prospects(history: History, units: Sequence[GatedUnit], epoch: Epoch | None) -> list[Prospect]:
    """Work out what a pull request would see of each unit.

    alpha is shared as in a run of all units with absolute limits beside them.
    """
    in_mean = sessions_of(history, epoch.sessions) if epoch else frozenset()
    return [_prospect(unit, in_mean, share=0.5 / len(units)) for unit in units]


@dataclass(frozen=True)
class RackNoise:
    """The medians of the deviations of boots and sessions, shares of the value, over all series of a rack."""

    boot: float
    session: float

    @property
    def name(self) -> str:
        """What such a rack is called, one of CLASSES."""
        for name, (most_boot, most_session) in zip(CLASSES, (QUIET, TYPICAL), strict=False):
            if self.boot <= most_boot and self.session <= most_session:
                return name
        return CLASSES[-1]


def rack_noise(found: Sequence[Prospect]) -> RackNoise | None:
    """Return the noise of a rack by its series on the scale log; None before one has enough sessions."""
    known = [
        noise
        for item in found
        if item.unit.scale.relative
        for noise in item.noise
        if noise.sessions >= FEWEST_SESSIONS and math.isfinite(noise.session_variance)
    ]
    if not known:
        return None
    boot = math.sqrt(median(noise.boot_variance for noise in known))
    session = math.sqrt(median(noise.session_variance for noise in known))
    return RackNoise(boot, session)


def _prospect(unit: GatedUnit, in_mean: frozenset[int], *, share: float) -> Prospect:
    noise = tuple(noise_of_unit(unit, in_mean))
    level = noise if in_mean else noise_of_unit(unit, sessions_with(unit))
    means = tuple(one.mean for one in level)
    boots = tuple(0 if series.entry is None else len(series.entry) for series in unit.series)
    if unit.metric.scale not in ("log", "identity"):
        note = "a fact, seen as it is" if unit.metric.exact else "depends on how many fail"
        return Prospect(unit, noise, means, boots, note=note)
    fewest = min(one.sessions for one in noise)
    if fewest < FEWEST_SESSIONS:
        note = f"{fewest} sessions with two boots of a board, {FEWEST_SESSIONS} needed"
        return Prospect(unit, noise, means, boots, note=note)
    variance = fmean(one.boot_variance for one in noise)
    found = smallest_effect(variance, len(noise), _design(unit, share))
    effect = unit.scale.size(found) if math.isfinite(found) else None
    note = "" if in_mean else "no epoch: variances only"
    return Prospect(unit, noise, means, boots, effect, note)


def _design(unit: GatedUnit, share: float) -> Design:
    """Return how a comparison of the unit is decided; ``share`` is its part of alpha."""
    policy, scale = unit.thresholds.policy, unit.scale
    return Design(
        looks=schedule(policy.max_boots),
        alpha=policy.alpha * share,
        beta=policy.beta,
        tolerance=scale.worse(unit.rule.tolerance),
        min_effect=scale.worse(unit.rule.min_effect),
    )
