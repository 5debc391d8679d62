"""Cells, notes and numbers that the tables of mqtt-qos have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from hil.reference import Row
from reports.reproduction.document import NONE, number
from reports.reproduction.estimate import Estimate
from reports.reproduction.qos_echoes import Echoes, rate_text
from reports.reproduction.records import whole


def milliseconds(row: Row | None) -> str:
    """Write a published number of seconds in ms."""
    return NONE if row is None or row.published is None else number(1000 * row.published)


def echo_cells(found: Echoes) -> tuple[str, ...]:
    """Return their way, p50 with its interval, p95, p99, n and lost, in ms."""
    return (
        number(found.theirs.as_published_ms),
        found.p50().text,
        found.quantile("p95").short,
        found.quantile("p99").short,
        str(found.n),
        str(found.lost),
    )


def echo_data(found: Echoes) -> Mapping[str, object]:
    """Return the same in numbers, in ms."""
    theirs = found.theirs
    return {
        "their_way_ms": theirs.as_published_ms,
        "their_way_true_ms": theirs.true_ms,
        "wrong_unit_count": theirs.wrong_unit_count,
        "p50": found.p50().data,
        "p95": found.quantile("p95").data,
        "p99": found.quantile("p99").data,
        "n": found.n,
        "lost": found.lost,
        "boots": found.boots,
    }


def rates_note(found: Iterable[Echoes]) -> list[str]:
    """Return a note of the rates at which ours were measured, none where nothing was."""
    intervals_us = sorted({whole(record, "interval_us") for own in found for record in own.records})
    if not intervals_us:
        return []
    rates = ", ".join(rate_text(interval_us) for interval_us in intervals_us)
    return [f"ours: messages planned at {rates}, on average"]


def their_note() -> str:
    return (
        "Their way: mean of the first boot's round trips from the sending, in whole ms, in R's units as they "
        "come; message 000000, what had no echo and what took 0 ms left out. p50, p95, p99: from when the "
        "message was planned to its whole echo; without an echo it counts as slower than all ('no echo')."
    )


def missing_notes(missing: Sequence[tuple[str, str]]) -> list[str]:
    """Return a note for each reason, with all the rows that it is the reason of: "10 KB, QoS 0, 1, 2"."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for label, why in missing:
        head, _, level = label.partition(", QoS ")
        reasons.setdefault(why.rstrip("."), {}).setdefault(head, []).append(level)
    return [
        f"Not measured: {'; '.join(_levels(head, found) for head, found in rows.items())}: {why}."
        for why, rows in reasons.items()
    ]


def _levels(head: str, levels: Sequence[str]) -> str:
    return f"{head}, QoS {', '.join(levels)}"


def in_ms(found: Estimate) -> str:
    """Return "3.43 [2.99, 3.72] ms", or how many samples are missing."""
    return f"{found.text} ms" if found.value is not None and math.isfinite(found.value) else found.text
