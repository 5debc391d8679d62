"""UDP by the rate that was offered: what was sent, what arrived, what was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.metrics.batches import overdispersion
from hil.metrics.stats import ratio_interval
from hil.model import RunRecord
from reports.reproduction.document import NONE, Line, Picture, Table, number
from reports.reproduction.estimate import ALPHA, Estimate, share_text
from reports.reproduction.records import BoardRun, fact, word
from reports.reproduction.throughput import (
    BENCH,
    IPERF_UDP_KBPS,
    Throughput,
    direction,
    grouped,
    offered_kbps,
    throughput_of,
    whole_test_mbps,
)

_STYLES = {"RX": "stat-p95", "TX": "stat-p99"}


@dataclass(frozen=True)
class Step:
    """One offered rate. ``sent_mbps`` is None where the sender's count was not recorded.

    ``lost`` of ``expected`` datagrams are those of the steady intervals, as the receiver counts them;
    ``effect`` is by how much more the loss varies than datagrams lost one by one would let it. ``host_lost``
    of the whole tests passed the host's interface and were not read in time by its iperf.
    """

    kbps: float
    sent_mbps: float | None
    received: Throughput
    lost: int
    expected: int
    effect: float = 1.0
    host_lost: int = 0

    @property
    def loss_text(self) -> str:
        if not self.expected:
            return NONE
        return share_text(
            self.lost / self.expected, ratio_interval(self.lost, self.expected, ALPHA, self.effect)
        )


def ramp_of(run: BoardRun, way: str) -> list[Step]:
    """Return the rates that were offered over UDP in a direction, ascending."""
    records = [record for record in run.of(BENCH) if word(record, "protocol") == "udp"]
    own = [record for record in records if direction(record) == way]
    return [_step(kbps, found) for kbps, found in grouped(own, offered_kbps).items()]


def _step(kbps: float, records: Sequence[RunRecord]) -> Step:
    rates = [rate for record in records if (rate := whole_test_mbps(record, "sent"))]
    sent = sum(rates) / len(rates) if rates else None
    losses, counts = (_steady(records, name) for name in ("lost_count", "expected_count"))
    expected = sum(counts)
    lost = max(0, min(sum(losses), expected))
    host_lost = sum(int(fact(record, "peer", "host_lost_count") or 0) for record in records)
    effect = overdispersion(losses, counts)
    return Step(kbps, sent, throughput_of(records), lost, expected, effect, host_lost)


def _steady(records: Sequence[RunRecord], column: str) -> list[int]:
    """Return a column's values after the start, records one after another."""
    return [value for record in records for value in record.columns.get(column, ())[record.warmup_rows :]]


def best_of(run: BoardRun, way: str, alpha: float = ALPHA) -> Estimate | None:
    """Return the highest mean rate that arrived over UDP in a direction; None where none was measured.

    Its bounds, each wrong with probability ``alpha`` at most, allow for its having been picked among several.
    """
    steps = [step.received for step in ramp_of(run, way) if step.received.mean.is_bounded]
    found = [received.mean_at(alpha / len(steps)) for received in steps]
    if not found:
        return None
    best = max(found, key=lambda one: one.value or 0.0)
    low, high = max(one.low for one in found), max(one.high for one in found)
    return Estimate(best.n, best.needed, best.value, low, high)


def ramp_table(run: BoardRun) -> Table | None:
    """Return the ramp of both directions with its picture; None where nothing was measured over UDP."""
    steps = [(way, step) for way in ("RX", "TX") for step in ramp_of(run, way)]
    if not steps:
        return None
    return Table(
        "ramp",
        "UDP by offered rate, Mbit/s",
        ("", "offered", "sent", "mean received", "lost", "datagrams", "boots"),
        tuple(_row(way, step) for way, step in steps),
        _notes(steps),
        tuple(_data(way, step) for way, step in steps),
        picture=_picture(steps),
    )


def _notes(steps: Sequence[tuple[str, Step]]) -> tuple[str, ...]:
    own = (
        "own: what iperf sends without -b; sent: TX by the time that the board was sending, RX by that of "
        "the whole test, in which the last datagrams still arrive; lost: with its interval, in which a burst "
        "counts as little more than one loss, so that one burst proves nothing"
    )
    host = (
        f"{way} at {number(step.kbps / 1000)} Mbit/s: {step.host_lost:,} of the lost datagrams passed the "
        "host's interface and its iperf was kept from reading them; they are not the link's loss."
        for way, step in steps
        if step.host_lost
    )
    return (own, *host)


def _row(way: str, step: Step) -> tuple[str, ...]:
    offered = f"{number(step.kbps / 1000)}{' (own)' if step.kbps == IPERF_UDP_KBPS else ''}"
    received = step.received
    cells = (received.mean.text, step.loss_text, f"{step.expected:,}", str(received.boots))
    return (way, offered, number(step.sent_mbps), *cells)


def _data(way: str, step: Step) -> Mapping[str, object]:
    return {
        "direction": way,
        "offered_mbps": step.kbps / 1000,
        "sent_mbps": step.sent_mbps,
        "mean": step.received.mean.data,
        "lost": step.lost,
        "expected": step.expected,
        "host_lost": step.host_lost,
    }


def _picture(steps: Sequence[tuple[str, Step]]) -> Picture | None:
    lines = []
    for way, style in _STYLES.items():
        points = tuple(
            (step.kbps / 1000, rate.value, *finite_ends(rate))
            for own, step in steps
            if own == way and (rate := step.received.mean).value is not None
        )
        lines += [Line(f"{way}, mean", style, points)] if points else []
    return Picture("received", "offered, Mbit/s", tuple(lines)) if lines else None


def finite_ends(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the interval's ends, None for one that there is not."""
    low, high = (None if math.isinf(end) else end for end in (estimate.low, estimate.high))
    return low, high
