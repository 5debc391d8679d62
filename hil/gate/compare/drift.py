# SPDX-License-Identifier: Apache-2.0
"""Boards that drift or step within a run: their values against the order of their boots.

Candidate and other take turns, so that this comes out of the comparison and decides nothing. But a board of
which each boot is slower than the last, or which is another from its fourth boot on, has something that a
person should look at, and makes its comparisons see less.

Of each board and metric the values, without the effect of the role, are fitted by a line over the boots, and
by a step between every two of them. The error is from what the best of these leaves, of all boards together;
where a board by itself says more, from that. A fit counts where its z exceeds Student's
boundary at LEVEL, shared by all boards, metrics and fits of the run, and still LEAST_ERRORS without any one
boot: no single boot makes a drift. It is told where over the run it comes to more than the comparison
tolerates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hil.base.numeric import np, special
from hil.base.units import find_unit, format_difference
from hil.gate.compare.boots import Scale, boots_in_order, scale_of
from hil.gate.compare.pairs import Pair
from hil.gate.words.comparisons import place
from hil.model import ComparedSeries

LEVEL = 0.01  # how often a run without drift names one
LEAST_ERRORS = 2.5
_FEWEST_BOOTS = 6  # of a board: fewer do not tell a drift from two bad boots
_LEAST_SPREAD = 1e-6  # of a shape without its role's mean
_FEWEST_OF_SIDE = 2  # boots before and after a step


@dataclass(frozen=True)
class Boots:
    """The boots of one board in their order: ``place`` in the run, ``value`` on the metric's scale."""

    place: np.ndarray
    value: np.ndarray
    is_candidate: np.ndarray


@dataclass(frozen=True)
class Drift:
    """What a board's values do along a run of so many ``boots``, on the metric's scale.

    ``size`` is that of a boot, or of a step before boot number ``step`` (from 1); ``total`` what it comes to
    over the run.
    """

    size: float
    total: float
    z: float
    boots: int
    step: int | None = None


@dataclass(frozen=True)
class _Fits:
    """All fits of one board, (fits,): the line first, then a step before each boot of ``steps`` (from 0)."""

    boots: Boots
    steps: np.ndarray
    slope: np.ndarray
    spread: np.ndarray  # sum of squares of what the slope is of
    least: np.ndarray  # slope times root of spread without the boot that adds the most to it
    left: np.ndarray  # sum of squared residuals
    freedom: int


def drifts_of(pairs: Sequence[Pair]) -> dict[tuple[str, str], Drift]:
    """Return what drifts beyond its tolerance, by series id and board, of a run's blocking comparisons."""
    found = {pair.series_id: (pair, _boards_of(pair)) for pair in pairs if _is_asked(pair)}
    tests = sum(len(boards) for _, boards in found.values())
    drifts = {}
    for series_id, (pair, boards) in found.items():
        assert pair.rule is not None
        tolerance = scale_of(pair.metric).worse(pair.rule.tolerance)
        level = LEVEL / max(tests, 1)
        for board, drift in find_drifts(boards, level).items():
            if abs(drift.total) > tolerance:
                drifts[series_id, board] = drift
    return drifts


def find_drifts(boards: Mapping[str, Boots], level: float) -> dict[str, Drift]:
    """Return the significant drift of each board that has one; ``level`` is of one board, two-sided."""
    fits = {board: fit for board, boots in boards.items() if (fit := _fits(boots)) is not None}
    freedom = sum(fit.freedom for fit in fits.values())
    if not freedom:
        return {}
    pooled = math.fsum(float(fit.left.min()) for fit in fits.values()) / freedom
    found = {}
    for board, fit in fits.items():
        variance = max(pooled, float(fit.left.min()) / fit.freedom)
        if variance <= 0.0:
            continue
        error = np.sqrt(variance)
        z = fit.slope * np.sqrt(fit.spread) / error
        # half of the level for the line, for boards mostly drift so; the other half for all steps
        shares = np.where(np.arange(len(z)) == 0, 0.5, 0.5 / max(len(z) - 1, 1))
        boundary = -special.stdtrit(freedom, level / 2.0 * shares)
        best = int((np.abs(z) / boundary).argmax())
        if abs(z[best]) > boundary[best] and fit.least[best] > LEAST_ERRORS * error:
            found[board] = _drift(fit, best, float(z[best]))
    return found


def _drift(fit: _Fits, best: int, z: float) -> Drift:
    place, size = fit.boots.place, float(fit.slope[best])
    if best == 0:
        return Drift(size, size * float(place[-1] - place[0]), z, len(place))
    return Drift(size, size, z, len(place), step=int(fit.steps[best - 1]) + 1)


def _is_asked(pair: Pair) -> bool:
    return pair.blocking and pair.metric.scale in ("log", "identity") and not pair.metric.exact


def _boards_of(pair: Pair) -> dict[str, Boots]:
    scale = scale_of(pair.metric)
    found = {}
    for board in pair.comparison.boards:
        boots = [
            (place, scale.position(value.value, value.quantum), is_candidate)
            for place, value, is_candidate in boots_in_order(pair, board)
        ]
        seen = [one for one in boots if np.isfinite(one[1])]
        if len(seen) >= _FEWEST_BOOTS:
            found[board] = _columns(seen)
    return found


def _columns(boots: Sequence[tuple[int, float, bool]]) -> Boots:
    place, value, is_candidate = zip(*boots, strict=True)
    return Boots(np.array(place, dtype=float), np.array(value, dtype=float), np.array(is_candidate))


def _fits(boots: Boots) -> _Fits | None:
    """Return the fits of a board, None where its boots are too few or of one role."""
    count = len(boots.place)
    if count < _FEWEST_BOOTS or boots.is_candidate.all() or not boots.is_candidate.any():
        return None
    steps = np.arange(_FEWEST_OF_SIDE, count - _FEWEST_OF_SIDE + 1)
    shapes = np.vstack([boots.place, np.arange(count) >= steps[:, np.newaxis]])
    x, y = _without_role(shapes, boots.is_candidate), _without_role(boots.value, boots.is_candidate)
    spread = (x**2).sum(axis=1)
    told = spread > _LEAST_SPREAD  # where the roles do not take turns, a step may be the role's own
    if not told[0]:
        return None
    x, spread, steps = x[told], spread[told], steps[told[1:]]
    slope = x @ y / spread
    residual = y - slope[:, np.newaxis] * x
    of_role = np.where(boots.is_candidate, boots.is_candidate.sum(), (~boots.is_candidate).sum())
    lever = np.minimum(1.0 / of_role + x**2 / spread[:, np.newaxis], 1.0 - 1e-9)
    without = slope[:, np.newaxis] - x * residual / (1.0 - lever) / spread[:, np.newaxis]
    share = np.maximum(1.0 - 1.0 / of_role, 1e-9)  # the only boot of a role says nothing: its x is 0
    rest = np.sqrt(np.maximum(spread[:, np.newaxis] - x**2 / share, 0.0))
    least = (np.sign(slope)[:, np.newaxis] * without * rest).min(axis=1)
    left = (residual**2).sum(axis=1)
    return _Fits(boots, steps, slope, spread, least, left, count - 4)


def _without_role(values: np.ndarray, is_candidate: np.ndarray) -> np.ndarray:
    """Return values without the mean of their role."""
    means = [values[..., role].mean(axis=-1, keepdims=True) for role in (is_candidate, ~is_candidate)]
    return np.asarray(values - np.where(is_candidate, means[0], means[1]))


Drifts = Mapping[tuple[str, str], Drift]  # by series id and board

_ADVICE = "what it says is balanced by the order, but look at its supply, temperature, antenna"


def describe_drift(drift: Drift, item: ComparedSeries) -> str:
    """Return "drifts: +2.1 % a boot over 12 boots (z 6.3)" or "steps: +40 % from its boot 4 of 12 on (…)"."""
    change = Scale(item.relative, 1 if item.direction == "lower" else -1).change(drift.size)
    sign = "−" if change < 0 else "+"
    size = (
        f"{abs(change) * 100:.2g} %"
        if item.relative
        else format_difference(abs(change), find_unit(item.unit))
    )
    z = f"(z {abs(drift.z):.1f})"
    if drift.step is None:
        return f"drifts: {sign}{size} a boot over {drift.boots} boots {z}"
    return f"steps: {sign}{size} from its boot {drift.step} of {drift.boots} on {z}"


def with_drifts(series: Sequence[ComparedSeries], drifts: Drifts) -> tuple[ComparedSeries, ...]:
    """Return the comparisons with what drifts beside the effect of its board."""
    return tuple(_with_drifts(item, drifts) for item in series)


def warnings_of(series: Sequence[ComparedSeries], drifts: Drifts) -> tuple[str, ...]:
    """Return a sentence a board, of the metric that shows it best."""
    items = {item.series_id: item for item in series}
    found = []
    for board in sorted({board for _, board in drifts}):
        own = {series_id: drift for (series_id, name), drift in drifts.items() if name == board}
        best = min(own, key=lambda series_id: (-abs(own[series_id].z), series_id))
        verb, _, words = describe_drift(own[best], items[best]).partition(": ")
        more = f", and {len(own) - 1} more" if len(own) > 1 else ""
        found.append(f"board {board} {verb}: {place(items[best])} {words}{more}; {_ADVICE}.")
    return tuple(found)


def _with_drifts(item: ComparedSeries, drifts: Drifts) -> ComparedSeries:
    effects = tuple(
        replace(effect, drift=describe_drift(drift, item))
        if (drift := drifts.get((item.series_id, effect.board))) is not None
        else effect
        for effect in item.effects
    )
    return replace(item, effects=effects)
