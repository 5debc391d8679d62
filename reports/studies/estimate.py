# SPDX-License-Identifier: Apache-2.0
"""Figures with their intervals, and nothing where there are too few samples for them.

A percentile is shown where n independent samples would bound it from both sides: by order statistics, where
max(q, 1 - q) ** n <= alpha. That is n >= 5 for p50, 59 for p5 and p95, 299 for p99.

Samples of one boot have the boot in common, and intervals of a stream depend on those before them besides. So
an interval over several boots has Student's t of the boots' own figures in it: a boot counts once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.base import special
from hil.base.numeric import np
from hil.metrics.stats import (
    Interval,
    mean,
    overdispersion,
    quantile,
    quantile_interval,
    ratio_interval,
)
from hil.reports.studies.document import number, percent

ALPHA = 0.05  # either bound is wrong with this probability at most
SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "p5": 0.05}


@dataclass(frozen=True)
class Estimate:
    """A statistic of ``n`` samples; ``value`` is None where they are fewer than ``needed``.

    ``low`` and ``high`` are infinite where the samples give no bound. ``never`` is what to say of a value
    that is infinite because it was never seen, ``why`` of a value that is not there.
    """

    n: int
    needed: int
    value: float | None = None
    low: float = -math.inf
    high: float = math.inf
    never: str = "timeout"
    why: str = ""

    @property
    def text(self) -> str:
        """Return "46.90 [46.50, 47.20]", or how many samples are missing."""
        if self.value is None:
            return self.why or (f"n < {self.needed}" if self.n else "–")
        if math.isinf(self.value) and math.isinf(self.low):
            return self.never
        return f"{self.short} [{_bound(self.low)}, {_bound(self.high)}]"

    @property
    def short(self) -> str:
        """Return the value alone, or how many samples are missing."""
        if self.value is None:
            return self.text
        return self.never if math.isinf(self.value) else number(self.value)

    @property
    def is_bounded(self) -> bool:
        """Return whether there are a value and both ends of its interval."""
        return self.value is not None and math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def data(self) -> Mapping[str, object]:
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "needed": self.needed}

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit."""
        value = None if self.value is None else self.value * factor
        return Estimate(self.n, self.needed, value, self.low * factor, self.high * factor)


NOTHING = Estimate(0, 0)


def _bound(value: float) -> str:
    return "?" if math.isinf(value) else number(value)


def samples_needed(share: float) -> int:
    """Return how many samples bound the quantile from both sides."""
    return math.ceil(math.log(ALPHA) / math.log(max(share, 1.0 - share)))


def estimate(values: Sequence[float], share: float) -> Estimate:
    """Return a quantile of the samples without an interval, which would need them to be independent."""
    needed = samples_needed(share)
    if len(values) < needed:
        return Estimate(len(values), needed)
    return Estimate(len(values), needed, quantile(values, share))


def estimates(values: Sequence[float]) -> dict[str, Estimate]:
    """Return p50, p95, p99 and p5."""
    return {name: estimate(values, share) for name, share in SHARES.items()}


def median(values: Sequence[float], boots: Sequence[int], alpha: float = ALPHA) -> Estimate:
    """Return the median of samples that are independent but for the boot they come from.

    The interval is that of order statistics, and of Student's t of the boots' medians where there are
    several: whichever reaches further. Of one boot it says nothing about another.
    """
    found = estimate(values, 0.5)
    if found.value is None:
        return found
    bounds = quantile_interval(values, 0.5, alpha)
    if len(set(boots)) > 1:
        pairs = list(zip(values, boots, strict=True))
        own = [quantile([value for value, at in pairs if at == boot], 0.5) for boot in sorted(set(boots))]
        over = student_interval(own, alpha)
        bounds = Interval(min(bounds.low, over.low), max(bounds.high, over.high))
    return Estimate(found.n, found.needed, found.value, bounds.low, bounds.high)


def student_interval(values: Sequence[float], alpha: float) -> Interval:
    """Bound the mean of what independent units (boots) come to by Student's t, each side at ``alpha``."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return Interval(-math.inf, math.inf)
    freedom = len(values) - 1
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = -special.stdtrit(freedom, alpha) * error
    return Interval(mean(values) - reach, mean(values) + reach)


def share_of(hits: Sequence[int], of: Sequence[int], alpha: float = ALPHA) -> Estimate:
    """Return the share that ``hits`` have of ``of``; where groups differ, those of one count for less."""
    if not sum(of):
        return Estimate(0, 1)
    bounds = ratio_interval(sum(hits), sum(of), alpha, overdispersion(hits, of))
    return Estimate(sum(of), 1, sum(hits) / sum(of), bounds.low, bounds.high)


def share_text(found: Estimate) -> str:
    """Write a share with its interval: "0.4 % [0.1, 0.9]"."""
    low, high = (percent(bound).removesuffix(" %") for bound in (found.low, found.high))
    return f"{percent(found.value)} [{low}, {high}]"


def counted_share(found: Estimate) -> str:
    """Write a share with its interval and what it is of: "0.4 % [0.1, 0.9] of 1,000"."""
    return f"{share_text(found)} of {found.n:,}"


def above(one: Estimate, other: Estimate) -> bool | None:
    """Return whether ``one`` is provably above ``other``, provably below, or None where it cannot be told."""
    if one.value is None or other.value is None:
        return None
    if one.low > other.high:
        return True
    return False if one.high < other.low else None


def mean_of_runs(values: Sequence[float], runs: int) -> float | None:
    """Return the mean of the first ``runs`` values, each rounded to the two decimals that were printed."""
    taken = [round(value, 2) for value in values[:runs]]
    return mean(taken) if taken else None


def mean_whole_ms(values_us: Sequence[int]) -> float | None:
    """Return the mean in ms of times that are cut to whole milliseconds; None without any."""
    whole = [value // 1000 for value in values_us]
    return mean(whole) if whole else None
