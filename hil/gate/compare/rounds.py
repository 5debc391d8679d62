# SPDX-License-Identifier: Apache-2.0
"""What a run that compares still has to measure: asked by the boot loop after each look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.gate.compare.family import family_of
from hil.gate.compare.units import units_of
from hil.gate.judging import check_entries, find
from hil.model import Comparison, Entry
from hil.thresholds.types import Thresholds


def open_cases(
    comparison: Comparison,
    entries: Sequence[Entry],
    thresholds: Mapping[str, Thresholds],
) -> frozenset[str]:
    """Return the case ids of which a blocking comparison is undecided, none where all are decided.

    ``entries`` are those of the run so far, all its comparisons among them. A case is asked again with what
    is known; decisions do not change any more. Raises ConfigError as judge() does.
    """
    entries = entries if comparison in entries else [comparison, *entries]
    check_entries(entries)
    if comparison.identical:
        return frozenset()
    family = family_of(entries, thresholds)
    return frozenset(
        unit.case.case_id
        for unit in units_of(comparison, entries, thresholds)
        if unit.blocking and not find(unit, family).final
    )
