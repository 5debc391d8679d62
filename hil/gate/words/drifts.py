# SPDX-License-Identifier: Apache-2.0
"""What a verdict says of boards that drift within a run: beside their effects, and as a warning each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hil.base.units import find_unit, format_difference
from hil.gate.compare.drift import Drift
from hil.gate.compare.scale import Scale
from hil.gate.words.comparisons import place
from hil.model import ComparedSeries

Drifts = Mapping[tuple[str, str], Drift]  # by series id and board

_ADVICE = "what it says is balanced by the order, but look at its supply, temperature, antenna"


def describe(drift: Drift, item: ComparedSeries) -> str:
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
        verb, _, words = describe(own[best], items[best]).partition(": ")
        more = f", and {len(own) - 1} more" if len(own) > 1 else ""
        found.append(f"board {board} {verb}: {place(items[best])} {words}{more}; {_ADVICE}.")
    return tuple(found)


def _with_drifts(item: ComparedSeries, drifts: Drifts) -> ComparedSeries:
    effects = tuple(
        replace(effect, drift=describe(drift, item))
        if (drift := drifts.get((item.series_id, effect.board))) is not None
        else effect
        for effect in item.effects
    )
    return replace(item, effects=effects)
