# SPDX-License-Identifier: Apache-2.0
"""Tables of what the study did not look at: drift of the baseline, headers as sent."""

from __future__ import annotations

import math

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
from hil.reports.studies.layout import Figures, lay_out, published_table
from hil.reports.studies.records import BoardRun, grouped, mean_fact, whole, word

OVERHEAD_OF_BYTES = 5000


def drifts_of(run: BoardRun) -> list[Figures]:
    """Return the baselines of more than one turn: each turn's mean, and how far the last is off the first.

    ``drift`` and ``spread``, the widest interval of a turn's mean, are ratios of the first turn's mean, None
    where they cannot be told. A baseline that moved by more than its spread ``exceeds`` it.
    """
    plain = [record for record in run.of(BENCH) if is_plain(record)]
    found = []
    for name, records in grouped(plain, _baseline).items():
        turns = ascending(records, lambda record: whole(record, "turn"))
        if len(turns) < 2:
            continue
        means = {f"{turn:.0f}": throughput_of(own).mean for turn, own in turns.items()}
        first, *_, last = (one.value for one in means.values())
        widest = max(one.high - one.low for one in means.values())
        drift = last / first - 1.0 if first and last is not None else None
        spread = widest / first if first and math.isfinite(widest) else None
        exceeds = drift is not None and spread is not None and abs(drift) > spread
        line = {"label": name, "turns": {turn: one.data for turn, one in means.items()}, "drift": drift}
        line |= {"spread": spread, "exceeds": exceeds, "moved": _signed(drift)}
        found.append(line | {f"turn{n}": one for n, one in enumerate(means.values())})
    return found


def _baseline(record: RunRecord) -> str:
    rate = whole(record, "rate_kbps")
    name = f"{word(record, 'protocol').upper()} {direction(record)}"
    return f"{name} at {rate} kbit/s" if rate else name


def drift_table(study: Study, run: BoardRun) -> Table | None:
    """Return the baselines before, between and after the sweeps."""
    lines = drifts_of(run)
    most = max((len(line["turns"]) for line in lines), default=0)
    turns = {f"turn{n}.short": f"turn {n + 1}" for n in range(most)}
    return lay_out(study, "drift", lines, more={**turns, "moved": "drift", "spread.share": "spread"})


def _signed(share: float | None) -> str:
    return NONE if share is None else f"{share * 100:+.1f} %".replace("-0.0", "+0.0")


def drift_warnings(_study: Study, run: BoardRun) -> tuple[str, ...]:
    return tuple(
        f"The baseline {line['label']} moved by {line['moved']} while the study ran, more than its spread of "
        f"{percent(line['spread'])}: a difference of that size between sizes may be the link's."
        for line in drifts_of(run)
        if line["exceeds"]
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
