# SPDX-License-Identifier: Apache-2.0
"""What the records of the bench ``throughput`` say, by the published way and by ours.

The published way: iperf's average over the whole test, slow start and last partial interval included, the
mean of three runs. Ours: the rate of each full interval after the start, as the receiver saw it.

Intervals of a stream depend on those before them, and a boot's on the boot. So the mean is bounded over
boots; of one boot over its tests; of one test over batches of its intervals (hil.metrics.stats).
Percentiles describe the intervals that were measured and have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hil.metrics.stats import batch_mean_interval, mean, overdispersion, ratio_interval
from hil.model import RunRecord
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import (
    ALPHA,
    NOTHING,
    Estimate,
    estimates,
    mean_of_runs,
    share_text,
    student_interval,
)
from hil.reports.studies.layout import Figures, lay_out
from hil.reports.studies.records import BoardRun, boots, fact, grouped, whole, word

BENCH = "throughput"
RUNS = 3
IPERF_UDP_KBPS = 1048.576  # what iperf sends over UDP without -b: 1,048,576 bit/s


@dataclass(frozen=True)
class Throughput:
    """Rates in Mbit/s of records that have the same parameters, ``turn`` apart.

    ``theirs`` is the published way's mean of ``runs`` runs at the receiver, None where the whole test was not
    recorded; ``theirs_sent`` is that at the sender.
    ``steady`` has p50, p95, p99 and p5 of the intervals, without bounds.
    """

    records: tuple[RunRecord, ...]
    theirs: float | None
    runs: int
    steady: dict[str, Estimate]
    theirs_sent: float | None = None

    @property
    def n(self) -> int:
        return self.p50.n

    @property
    def mean(self) -> Estimate:
        """The mean rate of the intervals, with an interval that counts a boot once."""
        return self.mean_at(ALPHA)

    def mean_at(self, alpha: float) -> Estimate:
        """Return the mean with bounds that are each wrong with probability ``alpha`` at most."""
        rates = steady_mbps(self.records)
        if not rates:
            return NOTHING
        units = [own for unit in _units(self.records) if (own := steady_mbps(unit))]
        if len(units) == 1:
            bounds, value = batch_mean_interval(rates, alpha), mean(rates)
        else:
            means = [mean(own) for own in units]
            bounds, value = student_interval(means, alpha), mean(means)
        return Estimate(len(rates), 1, value, bounds.low, bounds.high)

    @property
    def p50(self) -> Estimate:
        return self.steady["p50"]

    @property
    def floor(self) -> Estimate:
        """The rate that 95 % of the intervals reach."""
        return self.steady["p5"]

    @property
    def boots(self) -> int:
        return boots(self.records)


def throughput_of(records: Sequence[RunRecord]) -> Throughput:
    """Return the rates of the records; empty estimates where there is no record."""
    if not records:
        return Throughput((), None, 0, dict.fromkeys(("p50", "p95", "p99", "p5"), NOTHING))
    received, sent = (
        [found for record in records if (found := whole_test_mbps(record, end)) is not None]
        for end in ("received", "sent")
    )
    steady = estimates(steady_mbps(records))
    theirs, runs = mean_of_runs(received, RUNS), min(RUNS, len(received))
    return Throughput(tuple(records), theirs, runs, steady, mean_of_runs(sent, RUNS))


def _units(records: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Return what counts once: the boots, or of one boot its tests."""
    if boots(records) < 2:
        return [[record] for record in records]
    return list(grouped(records, lambda record: record.boot_index).values())


def scope(rates: Iterable[Throughput]) -> str:
    """Return what to add to a sentence that compares: of one boot, it says nothing about another."""
    return " in this boot (another may differ)" if any(rate.boots < 2 for rate in rates) else ""


def whole_test_mbps(record: RunRecord, end: str = "received") -> float | None:
    """Return the average over the whole test, as iperf prints it; None where it was not recorded.

    ``end`` is "received" or "sent". What the board sent counts by the time that it was sending: the whole
    test has its wait for the receiver's report besides.
    """
    moved, took_us = (fact(record, "peer", name) for name in (f"{end}_bytes", "whole_us"))
    if end == "sent" and board_sends(record):
        took_us = fact(record, "device", "sent_us") or took_us
    return None if moved is None or not took_us else moved * 8 / took_us


def steady_mbps(records: Iterable[RunRecord]) -> list[float]:
    """Return the rate of each full interval after the start."""
    return [bps / 1e6 for record in records for bps in record.columns["received_bps"][record.warmup_rows :]]


def board_sends(record: RunRecord) -> bool:
    return (word(record, "role") == "client") != bool(whole(record, "reverse"))


def direction(record: RunRecord) -> str:
    """Return the study's word: TX where the board sends, else RX."""
    return "TX" if board_sends(record) else "RX"


def offered_kbps(record: RunRecord) -> float:
    """Return the rate that the sender was told; iperf's own over UDP where it was not told any."""
    asked = whole(record, "rate_kbps")
    return asked or (IPERF_UDP_KBPS if word(record, "protocol") == "udp" else 0)


def asked_mss(record: RunRecord) -> int:
    """Return the segment size that was asked for, at whichever end; 0 where it was the stacks' own."""
    return whole(record, "peer_mss_bytes") or whole(record, "mss_bytes")


def asked_window(record: RunRecord, end: str = "receiver") -> int:
    """Return the window that the ``end`` (receiver or sender) was told; 0 where it was the stack's own."""
    at_board = board_sends(record) == (end == "sender")
    return whole(record, "window_bytes" if at_board else "peer_window_bytes")


def is_plain(record: RunRecord) -> bool:
    """Return whether all but direction and rate is iperf's own choice, for all of the duration."""
    others = ("amount_bytes", "length_bytes", "nodelay", "reverse")
    return not asked_mss(record) and has_own_windows(record) and not any(whole(record, one) for one in others)


def has_own_windows(record: RunRecord) -> bool:
    """Return whether neither end was told a window."""
    return not (whole(record, "window_bytes") or whole(record, "peer_window_bytes"))


def ascending(
    records: Iterable[RunRecord], key: Callable[[RunRecord], float]
) -> dict[float, list[RunRecord]]:
    """Return the records by a number, ascending."""
    return dict(sorted(grouped(records, key).items()))


def ramp_of(run: BoardRun, way: str) -> dict[float, list[RunRecord]]:
    """Return the records over UDP in a direction by the rate that was offered (kbit/s), ascending."""
    records = [record for record in run.of(BENCH) if word(record, "protocol") == "udp"]
    return ascending([record for record in records if direction(record) == way], offered_kbps)


def _steady(records: Sequence[RunRecord], column: str) -> list[int]:
    """Return a column's values after the start, records one after another."""
    return [value for record in records for value in record.columns.get(column, ())[record.warmup_rows :]]


def best_of(run: BoardRun, way: str, alpha: float = ALPHA) -> Estimate | None:
    """Return the highest mean rate that arrived over UDP in a direction; None where none was measured.

    Its bounds, each wrong with probability ``alpha`` at most, allow for its having been picked among several.
    """
    steps = [rates for own in ramp_of(run, way).values() if (rates := throughput_of(own)).mean.is_bounded]
    found = [received.mean_at(alpha / len(steps)) for received in steps]
    if not found:
        return None
    best = max(found, key=lambda one: one.value or 0.0)
    low, high = max(one.low for one in found), max(one.high for one in found)
    return Estimate(best.n, best.needed, best.value, low, high)


def ramp_table(study: Study, run: BoardRun) -> Table | None:
    """Return the ramp of both directions; None where nothing was measured over UDP."""
    steps = [(way, kbps, own) for way in ("RX", "TX") for kbps, own in ramp_of(run, way).items()]
    lines = [
        {"direction": way, "offered_mbps": kbps / 1000, **_step(own)}
        | {"offered": f"{number(kbps / 1000)}{' (own)' if kbps == IPERF_UDP_KBPS else ''}"}
        for way, kbps, own in steps
    ]
    notes = [
        f"{line['direction']} at {number(line['offered_mbps'])} Mbit/s: {line['host_lost']:,} of the lost "
        "datagrams passed the host's interface and its iperf was kept from reading them; they are not the "
        "link's loss."
        for line in lines
        if line["host_lost"]
    ]
    return lay_out(study, "ramp", lines, notes=notes)


def _step(records: Sequence[RunRecord]) -> Figures:
    """Return what was sent, received and lost at an offered rate.

    Lost datagrams are those of the steady intervals, as the receiver counts them; their interval allows for
    how much more the loss varies than datagrams lost one by one would let it.
    """
    sent = [rate for record in records if (rate := whole_test_mbps(record, "sent"))]
    losses, counts = (_steady(records, name) for name in ("lost_count", "expected_count"))
    expected = sum(counts)
    lost = max(0, min(sum(losses), expected))
    loss = NONE
    if expected:
        bounds = ratio_interval(lost, expected, ALPHA, overdispersion(losses, counts))
        loss = share_text(Estimate(expected, 1, lost / expected, bounds.low, bounds.high))
    received = throughput_of(records)
    return {
        "sent_mbps": sum(sent) / len(sent) if sent else None,
        "mean": received.mean,
        "lost": lost,
        "expected": expected,
        "loss": loss,
        "host_lost": sum(int(fact(record, "peer", "host_lost_count") or 0) for record in records),
        "boots": received.boots,
    }
