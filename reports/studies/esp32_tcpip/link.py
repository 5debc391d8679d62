# SPDX-License-Identifier: Apache-2.0
"""Tables of what the study did not look at: drift of the baseline, headers as sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.studies.comparison import corrected_text, published_text, table_notes
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number, percent
from hil.reports.studies.esp32_tcpip.rates import (
    BENCH,
    ascending,
    direction,
    is_plain,
    throughput_of,
)
from hil.reports.studies.estimate import Estimate
from hil.reports.studies.layout import Figures, lay_out, published_table
from hil.reports.studies.records import BoardRun, mean_fact, whole, word

OVERHEAD_OF_BYTES = 5000


@dataclass(frozen=True)
class Drift:
    """One baseline, measured several times: the mean of each turn, and how far the last lies from the first.

    ``drift`` and ``spread`` are ratios of the first turn's mean, None where it cannot be told; the spread is
    the widest interval of a turn's mean.
    """

    name: str
    turns: Mapping[int, Estimate]

    @property
    def drift(self) -> float | None:
        values = [turn.value for turn in self.turns.values()]
        if len(values) < 2 or not values[0] or values[-1] is None:
            return None
        return values[-1] / values[0] - 1.0

    @property
    def spread(self) -> float | None:
        first = next(iter(self.turns.values())).value
        widths = [turn.high - turn.low for turn in self.turns.values()]
        return max(widths) / first if first and math.isfinite(max(widths)) else None

    @property
    def exceeds(self) -> bool:
        """The baseline moved by more than its own uncertainty while the study ran."""
        return self.drift is not None and self.spread is not None and abs(self.drift) > self.spread


def drifts_of(run: BoardRun) -> list[Drift]:
    """Return the baselines that were measured in more than one turn."""
    plain = [record for record in run.of(BENCH) if is_plain(record)]
    found: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in plain:
        rate = whole(record, "rate_kbps")
        words = (
            word(record, "protocol").upper(),
            direction(record),
            *([f"at {rate} kbit/s"] if rate else []),
        )
        found.setdefault(words, []).append(record)
    drifts = []
    for words, records in found.items():
        turns = ascending(records, lambda record: whole(record, "turn"))
        if len(turns) > 1:
            estimates = {int(turn): throughput_of(own).mean for turn, own in turns.items()}
            drifts.append(Drift(" ".join(words), estimates))
    return drifts


def drift_table(study: Study, run: BoardRun) -> Table | None:
    """Return the baselines before, between and after the sweeps."""
    drifts = drifts_of(run)
    most = max((len(drift.turns) for drift in drifts), default=0)
    lines = [
        {"label": drift.name, "turns": {str(turn): found.data for turn, found in drift.turns.items()}}
        | {f"turn{n}": found for n, found in enumerate(drift.turns.values())}
        | {
            "drift": drift.drift,
            "spread": drift.spread,
            "exceeds": drift.exceeds,
            "moved": _signed(drift.drift),
        }
        for drift in drifts
    ]
    turns = {f"turn{n}.short": f"turn {n + 1}" for n in range(most)}
    return lay_out(study, "drift", lines, more={**turns, "moved": "drift", "spread.share": "spread"})


def _signed(share: float | None) -> str:
    return NONE if share is None else f"{share * 100:+.1f} %".replace("-0.0", "+0.0")


def drift_warnings(_study: Study, run: BoardRun) -> tuple[str, ...]:
    return tuple(
        f"The baseline {drift.name} moved by {_signed(drift.drift)} while the study ran, more than its "
        f"spread of {percent(drift.spread)}: a difference of that size between sizes may be the link's."
        for drift in drifts_of(run)
        if drift.exceeds
    )


def overhead_table(study: Study, run: BoardRun) -> Table:
    """Return the headers as published, as they should have been, and as the capture counts them."""
    published = study.table("overhead")
    lines: list[Figures] = []
    notes = table_notes(published)
    for row in published.rows:
        captured = _captured_overhead(row, run)
        line = {"label": row.label, "published": row.published, "shown": published_text(row)}
        line |= {"corrected": row.corrected, "right": corrected_text(row), "captured": captured}
        line["counted"] = NOT_MEASURED if captured is None else f"{captured:,.0f}"
        lines.append(line | (_segments(row, run) if captured is not None else {}))
        notes.append(f"{row.label}: {row.formula}; {row.why}.")
        if captured is None and row.ours:
            missing = "its capture holds no counts" if run.select(row.ours) else run.why_missing(row.ours)
            notes.append(f"{row.label} was not counted: {missing}.")
    return published_table(study, "overhead", published, lines, notes)


def _captured_overhead(row: Row, run: BoardRun) -> float | None:
    """Return the bytes of headers for as much data as the formula takes, as captured."""
    records = run.select(row.ours) if row.ours else ()
    headers, payload = (mean_fact(records, f"capture_{name}_bytes") for name in ("header", "payload"))
    return None if headers is None or not payload else headers / payload * OVERHEAD_OF_BYTES


def _segments(row: Row, run: BoardRun) -> Figures:
    """Return headers and data a segment, in bytes."""
    records = run.select(row.ours) if row.ours else ()
    count, headers, payload = (
        mean_fact(records, f"capture_{name}") for name in ("segments_count", "header_bytes", "payload_bytes")
    )
    if not count or headers is None or payload is None:
        return {}
    return {"header": _mean_bytes(headers / count), "payload": _mean_bytes(payload / count)}


def _mean_bytes(mean: float) -> str:
    """Write a mean of bytes; whole where it is, for that is a size."""
    return f"{mean:,.0f}" if mean == int(mean) else number(mean)
