# SPDX-License-Identifier: Apache-2.0
"""How often the gate may be wrong in one run: alpha is shared out, advice is corrected for how much there is.

What alpha is divided by is known before anything is measured, so that a decision made early still stands at
the end: every unit counts that a rule or a limit may make blocking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.gate.compare.cases import cases_of
from hil.gate.compare.units import may_be_limited, may_block
from hil.model import Comparison, Entry
from hil.thresholds.types import Thresholds

FALSE_DISCOVERY_RATE = 0.05
_BOTH = 0.5  # of alpha, where a run has comparisons and absolute limits


@dataclass(frozen=True)
class Family:
    """The share of a policy's alpha that one blocking comparison has, and that all blocking limits have."""

    comparison: float = 1.0
    limits: float = 1.0


def family_of(entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]) -> Family:
    """Share out alpha among the blocking decisions of a run. Raises ConfigError as units_of() does."""
    compared, limited = 0, False
    for comparison in (entry for entry in entries if isinstance(entry, Comparison)):
        if comparison.identical:
            continue
        for case in cases_of(comparison, entries, thresholds).values():
            own = thresholds[case.bench]
            for metric in own.metrics_of(case.parameters):
                compared += may_block(comparison, case, metric, own)
                limited = limited or may_be_limited(comparison, case, metric, own)
    if not compared:
        return Family()
    share = _BOTH if limited else 1.0
    return Family(comparison=share / compared, limits=share)


def discoveries(p_values: Sequence[float], rate: float = FALSE_DISCOVERY_RATE) -> list[bool]:
    """Say which p values are discoveries (Benjamini & Hochberg 1995): that share is false on average."""
    if not p_values:
        return []
    values = np.asarray(p_values, dtype=float)
    order = np.argsort(values, kind="stable")
    bounds = rate * np.arange(1, len(values) + 1) / len(values)
    below = np.nonzero(values[order] <= bounds)[0]
    last = values[order][below[-1]] if len(below) else -1.0
    return [bool(value <= last) for value in values]
