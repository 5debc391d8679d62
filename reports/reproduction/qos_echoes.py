"""The messages in the records of the bench ``echo``: by setting, by the study's estimator and by ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hil.metrics.stats import quantile_interval
from hil.model import RunRecord, Scalar
from hil.reference import Comparison
from reports.reproduction.estimate import ALPHA, SHARES, Estimate, estimate, median
from reports.reproduction.qos_estimator import Noted, TheirMean, pooled
from reports.reproduction.records import BoardRun, boots, fact, whole

BENCH = "echo"
OK = 0
_NEVER_SENT = (2, 3, 4)  # refused, outbox full, overrun: no call took the message
_PLAIN: Mapping[str, Scalar] = {
    "transport": "tcp",
    "nodelay": 1,
    "broker_nodelay": 1,
    "echo_nodelay": 1,
    "inflight": 0,
    "broker_inflight": 20,
    "clean_session": 1,
    "persistence": "off",
    "air": "rack",
    "delay_us": -1,
    "rate_up_kbit": 0,
    "rate_down_kbit": 0,
    "loss_up_ppm": 0,
    "loss_down_ppm": 0,
    "cut_every_ms": 0,
}
RATE_US = "interval_us"


@dataclass(frozen=True)
class Echoes:
    """Records of one setting. Figures are of the messages after the warm-up; without an echo they are inf."""

    records: tuple[RunRecord, ...]

    @cached_property
    def response_ms(self) -> list[float]:
        """From when each message was planned to its whole echo."""
        return self._since("planned_us")

    @cached_property
    def round_trip_ms(self) -> list[float]:
        """From when each message was sent, which leaves out what it waited for the one before."""
        return self._since("sent_us")

    def _since(self, column: str) -> list[float]:
        return [
            (done - begun) / 1000 if outcome == OK else math.inf
            for record in self.records
            for begun, done, outcome in _rows(record, column, "done_us", "outcome")
        ]

    @cached_property
    def boot_of_each(self) -> list[int]:
        return [record.boot_index for record in self.records for _ in _rows(record, "outcome")]

    @property
    def n(self) -> int:
        return len(self.response_ms)

    @property
    def answered(self) -> int:
        return sum(map(math.isfinite, self.response_ms))

    @property
    def lost(self) -> int:
        """How many messages had no echo in time, or were never sent."""
        return self.n - self.answered

    @property
    def boots(self) -> int:
        return boots(self.records)

    def p50(self, alpha: float = ALPHA) -> Estimate:
        """Return the median response in ms, with bounds that allow for messages that wait behind others."""
        return self._median(self.response_ms, alpha)

    def round_trip(self, alpha: float = ALPHA) -> Estimate:
        """Return the median round trip from the sending, in ms."""
        return self._median(self.round_trip_ms, alpha)

    def quantile(self, name: str) -> Estimate:
        """Return p95 or p99 of the response in ms, without bounds."""
        return estimate(self.response_ms, SHARES[name])

    @property
    def theirs(self) -> TheirMean:
        """What the study's estimator makes of the first boot."""
        first = min((record.boot_index for record in self.records), default=0)
        return pooled(_log_of(record) for record in self.records if record.boot_index == first)

    def fact(self, name: str) -> float | None:
        """Return the mean of a number that the peer told; None where no record has it."""
        found = [value for record in self.records if (value := fact(record, "peer", name)) is not None]
        return sum(found) / len(found) if found else None

    def most(self, name: str) -> float | None:
        """Return the largest of a number that the peer told; None where no record has it."""
        found = [value for record in self.records if (value := fact(record, "peer", name)) is not None]
        return max(found, default=None)

    def total(self, name: str) -> float | None:
        """Return the sum of a count that the peer told; None where a record lacks it."""
        found = [fact(record, "peer", name) for record in self.records]
        known = [value for value in found if value is not None]
        return sum(known) if found and len(known) == len(found) else None

    def told(self, name: str) -> str:
        """Return a word that the peer told in the first record; "" where it told none."""
        value = self.records[0].environment.get("peer", {}).get(name) if self.records else None
        return value if isinstance(value, str) else ""

    def _median(self, values: Sequence[float], alpha: float) -> Estimate:
        found = median(values, self.boot_of_each, alpha)
        if found.value is None:
            return found
        depends = quantile_interval(values, 0.5, alpha, self._done_us())
        low, high = min(found.low, depends.low), max(found.high, depends.high)
        return Estimate(found.n, found.needed, found.value, low, high, "no echo")

    def _done_us(self) -> list[int]:
        """Return when each message was done with, one record after another."""
        found: list[int] = []
        for record in self.records:
            begin, timeout_us = max(found, default=0), whole(record, "timeout_ms") * 1000
            found += [
                begin + (done if outcome == OK else planned + timeout_us)
                for planned, done, outcome in _rows(record, "planned_us", "done_us", "outcome")
            ]
        return found


NO_ECHOES = Echoes(())


def _rows(record: RunRecord, *names: str) -> Iterable[tuple[int, ...]]:
    """Return these columns of the rows after the warm-up."""
    return zip(*(record.columns[name][record.warmup_rows :] for name in names), strict=True)


def _log_of(record: RunRecord) -> tuple[list[Noted], list[Noted]]:
    """Return what the study would have logged of a record, its warm-up included."""
    sent, received = [], []
    columns = (record.columns[name] for name in ("sent_us", "done_us", "outcome"))
    for number, (sent_us, done_us, outcome) in enumerate(zip(*columns, strict=True)):
        if outcome not in _NEVER_SENT:
            sent.append(Noted(number, sent_us))
        if outcome == OK:
            received.append(Noted(number, done_us))
    return sent, received


def selected(run: BoardRun, wanted: Comparison | None) -> Echoes:
    """Return the messages that a row compares with."""
    return Echoes(run.select(wanted)) if wanted else NO_ECHOES


def by_setting(records: Iterable[RunRecord], *names: str) -> dict[tuple[Scalar, ...], Echoes]:
    """Return the messages by the values of these parameters, in ascending order."""
    found: dict[tuple[Scalar, ...], list[RunRecord]] = {}
    for record in records:
        found.setdefault(tuple(record.parameters.get(name) for name in names), []).append(record)
    return {key: Echoes(tuple(found[key])) for key in sorted(found, key=_order)}


def _order(key: Sequence[Scalar]) -> tuple[tuple[bool, float, str], ...]:
    return tuple(
        (
            not isinstance(value, int | float),
            float(value) if isinstance(value, int | float) else 0,
            str(value),
        )
        for value in key
    )


def others(record: RunRecord, *names: str) -> bool:
    """Say whether anything but these parameters, payload, QoS and rate is not as usual."""
    return any(
        str(record.parameters.get(name, usual)) != str(usual)
        for name, usual in _PLAIN.items()
        if name not in names
    )


def plain(run: BoardRun) -> list[RunRecord]:
    """Return the records in which nothing but payload, QoS and rate varies."""
    return [record for record in run.of(BENCH) if not others(record)]


def rate_text(interval_us: int) -> str:
    """Return "10/s" for an interval of 100 ms."""
    return f"{1e6 / interval_us:,.3g}/s" if interval_us else ""


def size_text(payload_bytes: int) -> str:
    """Return "10 KB" for 10000 and for 10240."""
    for unit, factors in (("MB", (1 << 20, 10**6)), ("KB", (1 << 10, 10**3))):
        for factor in factors:
            if payload_bytes and payload_bytes % factor == 0:
                return f"{payload_bytes // factor} {unit}"
    return f"{payload_bytes} B"
