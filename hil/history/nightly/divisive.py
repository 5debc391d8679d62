# SPDX-License-Identifier: Apache-2.0
"""Steps in a series of nights: E-divisive as Apache Otava has it, with what stood in its way replaced.

Otava splits a series where the energy distance between its parts is largest, asks a t-test whether they
differ, and goes on with the parts (Matteson and James 2014; Fleming et al. 2023). Of it, this uses the
distances and the splitting. Its own t-test divides by n (ddof=0), by which two nights look far too certain;
a single night may become a part, so that one spike is two change points (apache/otava#150); and an array is
split at other places than a list of the same numbers, as only a list is cut to the window. Here there are no
windows, a part has at least NIGHTS_MIN nights, the test has ddof=1, and a step must not hang on one night.
Otava tests a split against all that follows, so that a level which comes and goes hides itself; here it is
also tested against the stretch that the distances found it by.

One series of ratios from nights beside several reference firmwares, of which each overlaps the next.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hil.base import special
from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.history.nightly.nights import Night

P_VALUE = 1e-4
FIRST_PASS = 10 * P_VALUE  # steps that further splits may make certain
FOR_A_WHILE = P_VALUE / 100  # of a level that ends again: there are about so many ends to choose from
WITHOUT_ONE_NIGHT = 1e-3  # what is left of a step without its most telling night
MAGNITUDE = math.log1p(0.03)  # the least difference of levels that counts
NIGHTS_MIN = 2
FEWEST_NIGHTS = 2 * NIGHTS_MIN  # in which a step can be found
NEAR = 3
LIKELIHOOD = 3.0  # in units of the logarithm: half of the 0.95 quantile of chi-squared for two parameters

_PACKAGES = {"otava": "apache-otava", "scipy": "scipy"}
# the extra `nights` of the package
INSTALL = shlex.join(
    [sys.executable, "-m", "pip", "install", "--no-deps", "apache-otava>=0.8,<0.9", "scipy>=1.15,<2"]
)


def find_steps(logs: Sequence[float]) -> list[int]:
    """Return the indices at which another level begins, of finite values on a log scale, in order of time.

    Raises ConfigError where Otava or SciPy, which it needs, is not installed: pip would bring Otava's cloud
    clients, and other numpy and ruamel.yaml, with it.
    """
    if len(logs) < FEWEST_NIGHTS:
        return []
    values = np.asarray(logs, dtype=float)
    try:
        from hil.history.nightly.splitting import split
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(str(error.name).partition(".")[0])
        if not package:
            raise
        raise ConfigError(
            f"the steps of a series of nights cannot be found: {package} is not installed.",
            next_step=INSTALL,
        ) from error
    steps = split(values)
    while steps:  # the weakest goes first, as its neighbours' parts grow by it
        doubts = [_doubt(*_parts(values, steps, n), MAGNITUDE) for n in range(len(steps))]
        weakest = int(np.argmax(doubts))
        if doubts[weakest] <= 0:
            break
        del steps[weakest]
    return steps


def p_value(before: np.ndarray, after: np.ndarray) -> float:
    """Return the two-sided p of Student's t-test; 0 or 1 where nothing varies, 1 where it cannot be asked."""
    freedom = len(before) + len(after) - 2
    if not len(before) or not len(after) or freedom < 1:
        return 1.0
    squares = _squares(before) + _squares(after)
    difference = abs(float(after.mean() - before.mean()))
    error = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(after)))
    if error <= 1e-12 * max(1.0, difference):  # rounding apart, all are equal on both sides
        return 0.0 if difference > 1e-9 else 1.0
    return float(2 * special.stdtr(freedom, -difference / error))


def interval(before: np.ndarray, after: np.ndarray, alpha: float = 0.05) -> tuple[float, float, float]:
    """Return the difference of the levels and its confidence interval (both parts have one variance)."""
    difference = float(after.mean() - before.mean())
    freedom = len(before) + len(after) - 2
    squares = _squares(before) + _squares(after)
    error = math.sqrt(squares / max(freedom, 1) * (1 / len(before) + 1 / len(after)))
    half = -special.stdtrit(max(freedom, 1), alpha / 2) * error
    return difference, difference - half, difference + half


def plausible(logs: Sequence[float], start: int, step: int, end: int) -> tuple[int, int]:
    """Return between which indices the level of a part ``start:end`` changed, where a step is at ``step``.

    Those around it of which the likelihood is not much smaller than that of the best, at most NEAR away.
    """
    part = np.asarray(logs[start:end], dtype=float)
    around = range(max(start + 1, step - NEAR), min(end - 1, step + NEAR) + 1)
    spread = {n: _squares(part[: n - start]) + _squares(part[n - start :]) for n in around}
    bound = min(spread.values()) * math.exp(2 * LIKELIHOOD / len(part)) + 1e-18
    likely = [n for n in around if spread[n] <= bound]
    return min(step, *likely), max(step, *likely)


def loss_at(part: np.ndarray, best: int, other: int) -> float:
    """Return the log likelihood ratio of a step at ``best`` against a step at ``other`` (at least 0)."""
    at_best = _squares(part[:best]) + _squares(part[best:])
    at_other = _squares(part[:other]) + _squares(part[other:])
    return max(0.0, len(part) / 2 * math.log((at_other + 1e-18) / (at_best + 1e-18)))


def _squares(part: np.ndarray) -> float:
    return float(((part - part.mean()) ** 2).sum())


def _parts(values: np.ndarray, steps: Sequence[int], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values between the step before and the n-th, and between that and the next."""
    edges = [0, *steps, len(values)]
    return values[edges[n] : edges[n + 1]], values[edges[n + 1] : edges[n + 2]]


def _doubt(before: np.ndarray, after: np.ndarray, magnitude: float) -> float:
    """Return 0 where a step counts; the larger the weaker it is where it does not."""
    p = p_value(before, after)
    if p > P_VALUE:
        return 2.0 + p
    sign = 1.0 if after.mean() > before.mean() else -1.0
    for left, right in ((before, _without_extreme(after, sign)), (_without_extreme(before, -sign), after)):
        missing = magnitude - sign * float(right.mean() - left.mean())
        if missing > 0:
            return 1.0 + missing
        if p_value(left, right) > WITHOUT_ONE_NIGHT:
            return 1.0
    return 0.0


def _without_extreme(part: np.ndarray, sign: float) -> np.ndarray:
    """Leave out the night that lies furthest in a direction."""
    return np.delete(part, int(np.argmax(sign * part)))


OVERLAP_NIGHTS = 14


@dataclass(frozen=True)
class Chain:
    """Nights that can be set beside each other, and their ratios to the first of the references (logarithms).

    ``overlaps`` are how many nights measured a renewed reference and one before it, for each renewal.
    """

    nights: tuple[Night, ...]
    ratios: tuple[float, ...]
    overlaps: tuple[int, ...] = ()


def chain(nights: Sequence[Night]) -> list[Chain]:
    """Return the nights with a reference, in chains: one more begins where a reference does not overlap.

    A new reference is set to the level at which it was while one before it was measured too: the middle of
    their differences. So a faster or slower reference makes no step.
    """
    parts: list[list[Night]] = []
    known: set[str] = set()
    for night in nights:
        if not night.ratios:
            continue
        if not parts or not _linked(night, known, nights):
            parts.append([])
            known = set()
        parts[-1].append(night)
        known |= set(night.ratios)
    return [_link(part) for part in parts]


def _linked(night: Night, known: set[str], nights: Sequence[Night]) -> bool:
    """Whether a night has a reference that some night measured beside a known one."""
    own = set(night.ratios)
    return bool(own & known) or any(own & set(other.ratios) and known & set(other.ratios) for other in nights)


def _link(nights: Sequence[Night]) -> Chain:
    images = list(dict.fromkeys(image for night in nights for image in night.ratios))
    offsets = {images[0]: 0.0}
    overlaps = []
    for image in images[1:]:
        both = [
            float(np.mean([night.ratios[old] + offsets[old] for old in offsets if old in night.ratios]))
            - night.ratios[image]
            for night in nights
            if image in night.ratios and set(offsets) & set(night.ratios)
        ]
        if both:
            offsets[image] = _middle(both)
            overlaps.append(len(both))
    ratios = [
        float(np.mean([ratio + offsets[image] for image, ratio in night.ratios.items() if image in offsets]))
        for night in nights
    ]
    return Chain(tuple(nights), tuple(ratios), tuple(overlaps))


def _middle(values: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate: nearly as sure as the mean, and a bad night does not move it."""
    array = np.asarray(values)
    first, second = np.triu_indices(len(array))
    return float(np.median((array[first] + array[second]) / 2))
