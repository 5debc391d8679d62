"""What the records of the bench ``throughput`` say, by the published way and by ours.

The published way: iperf's average over the whole test, slow start and last partial interval included, the
mean of three runs. Ours: the rate of each full interval after the start, as the receiver saw it.

Intervals of a stream depend on those before them, and a boot's on the boot. So the mean is bounded over
boots; of one boot over its tests; of one test over batches of its intervals (hil.metrics.batches).
Percentiles describe the intervals that were measured and have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hil.metrics.batches import batch_mean_interval
from hil.metrics.stats import mean
from hil.model import RunRecord
from reports.reproduction.estimate import (
    ALPHA,
    NOTHING,
    Estimate,
    estimates,
    mean_of_runs,
    student_interval,
)
from reports.reproduction.records import boots, fact, whole, word

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
    units: dict[int, list[RunRecord]] = {}
    for record in records:
        units.setdefault(record.boot_index, []).append(record)
    return list(units.values())


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
    """Say whether all but direction and rate is iperf's own choice, for all of the duration."""
    others = ("amount_bytes", "length_bytes", "nodelay", "reverse")
    return not asked_mss(record) and has_own_windows(record) and not any(whole(record, one) for one in others)


def has_own_windows(record: RunRecord) -> bool:
    """Say whether neither end was told a window."""
    return not (whole(record, "window_bytes") or whole(record, "peer_window_bytes"))


def grouped(
    records: Iterable[RunRecord], key: Callable[[RunRecord], float]
) -> dict[float, tuple[RunRecord, ...]]:
    """Return the records by a number, ascending."""
    found: dict[float, list[RunRecord]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return {value: tuple(found[value]) for value in sorted(found)}


def mean_fact(records: Sequence[RunRecord], name: str, group: str = "peer") -> float | None:
    """Return the mean of a fact of the environment over the records that have it."""
    found = [value for record in records if (value := fact(record, group, name)) is not None]
    return sum(found) / len(found) if found else None
