# SPDX-License-Identifier: Apache-2.0
"""The messages in the records of the bench ``delivery``: how long publishing one took, and what became of it.

A boot counts once: bounds of a mean are Student's t of what the boots come to, of a single boot those of
batches of its messages, which follow one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hil.metrics.stats import Interval, batch_mean_interval, mean
from hil.model import RunRecord
from hil.reports.studies.estimate import ALPHA, NOTHING, Estimate, student_interval
from hil.reports.studies.records import facts, grouped, rate_text, say, whole, word

BENCH = "delivery"
OK, TIMEOUT, OVERRUN = 0, 1, 4
MAPPINGS = {
    ("none", "none"): "unpinned",
    ("0", "1"): "sensor 0, MQTT 1",
    ("1", "0"): "sensor 1, MQTT 0",
}
# what a case may set besides transport, cores and interval: the study's usual value, and what else is called
_USUAL: dict[str, tuple[str, str]] = {
    "qos": ("0", "QoS {}"),
    "schedule": ("periodic", "{} schedule"),
    "retain": ("0", "retained"),
    "nodelay": ("1", "Nagle"),
    "broker_nodelay": ("1", "broker with Nagle"),
    "subscriber_nodelay": ("1", "subscriber with Nagle"),
    "api": ("publish", "{}"),
    "persistence": ("off", "persistence {}"),
    "air": ("rack", "{}"),
    "fault": ("none", "{}"),
}


@dataclass(frozen=True)
class Message:
    """One row of a record after the warm-up. Times are in µs, on the board's clock."""

    boot: int
    planned_us: int
    sent_us: int
    mutex_wait_us: int
    serialise_us: int
    publish_call_us: int
    outcome: int
    owner: int

    @property
    def was_called(self) -> bool:
        """Whether the publish call took it, be it acknowledged or not."""
        return self.outcome in (OK, TIMEOUT)

    @property
    def begun_us(self) -> int:
        """When the study's time begins: before the mutex is taken."""
        return self.sent_us - self.serialise_us - self.mutex_wait_us

    @property
    def call_ms(self) -> float:
        return self.publish_call_us / 1000

    @property
    def mutex_ms(self) -> float:
        return self.mutex_wait_us / 1000

    @property
    def whole_us(self) -> int:
        """How long all of it took: waiting for the mutex, serialising, publishing."""
        return self.mutex_wait_us + self.serialise_us + self.publish_call_us

    @property
    def whole_ms(self) -> int:
        """The same by a clock of whole ms, read before and after."""
        return (self.begun_us + self.whole_us) // 1000 - self.begun_us // 1000


def messages_of(records: Iterable[RunRecord]) -> list[Message]:
    """Return the rows after each record's warm-up."""
    return [_message(record, row) for record in records for row in range(record.warmup_rows, record.rows)]


def _message(record: RunRecord, row: int) -> Message:
    columns = record.columns
    planned, sent, wait, serialise, call, outcome = (columns[name][row] for name in _COLUMNS)
    owner = columns["owner"][row] if "owner" in columns else 0
    return Message(record.boot_index, planned, sent, wait, serialise, call, outcome, owner)


_COLUMNS = ("planned_us", "sent_us", "mutex_wait_us", "serialise_us", "publish_call_us", "outcome")


def called(records: Iterable[RunRecord]) -> list[Message]:
    """Return the messages that the publish call took."""
    return [message for message in messages_of(records) if message.was_called]


def boot_mean(values: Sequence[float], boots: Sequence[int], alpha: float = ALPHA) -> Estimate:
    """Return the mean of the boots' means with its bounds, each wrong with ``alpha`` at most.

    The mean of what is never negative is not bounded below 0.
    """
    if not values:
        return NOTHING
    found = _by_boot(values, boots)
    means = [mean(own) for own in found.values()]
    bounds = student_interval(means, alpha) if len(means) > 1 else batch_mean_interval(values, alpha)
    low = max(0.0, bounds.low) if math.isfinite(bounds.low) and min(values) >= 0 else bounds.low
    return Estimate(len(values), 1, mean(means), low, bounds.high)


def mean_of(messages: Sequence[Message], value: Callable[[Message], float]) -> Estimate:
    """Return the mean of a value of the messages, over boots."""
    return boot_mean([value(one) for one in messages], [one.boot for one in messages])


def difference(
    one: Sequence[Message],
    other: Sequence[Message],
    value: Callable[[Message], float],
    alpha: float = ALPHA,
) -> Estimate:
    """Return how much the mean of ``one`` is above that of ``other``, pair by pair of one boot.

    What a boot does to both falls out. Of one boot the bounds are those of two means that are independent.
    """
    pairs = [
        _by_boot([value(message) for message in own], [message.boot for message in own])
        for own in (one, other)
    ]
    both = sorted(set(pairs[0]) & set(pairs[1]))
    if not both:
        return NOTHING
    apart = [mean(pairs[0][boot]) - mean(pairs[1][boot]) for boot in both]
    if len(both) > 1:
        bounds = student_interval(apart, alpha)
    else:
        high, low = (boot_mean(own[both[0]], both * len(own[both[0]]), alpha / 2) for own in pairs)
        bounds = Interval(high.low - low.high, high.high - low.low)
    return Estimate(len(both), 1, mean(apart), bounds.low, bounds.high)


def paired(values: Sequence[dict[int, float]], alpha: float = ALPHA) -> Estimate:
    """Return how far the first of two figures of a boot is above the second, over boots that have both."""
    one, other = values
    apart = [one[boot] - other[boot] for boot in sorted(set(one) & set(other))]
    if not apart:
        return NOTHING
    bounds = student_interval(apart, alpha)
    return Estimate(len(apart), 1, mean(apart), bounds.low, bounds.high)


def facts_by_boot(records: Iterable[RunRecord], name: str) -> dict[int, float]:
    """Return the mean of a fact of the peer's by boot, of the boots that have it."""
    boots = grouped(records, lambda record: record.boot_index)
    found = {boot: facts(own, name) for boot, own in boots.items()}
    return {boot: mean(values) for boot, values in found.items() if values}


def _by_boot(values: Sequence[float], boots: Sequence[int]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for value, boot in zip(values, boots, strict=True):
        found.setdefault(boot, []).append(value)
    return found


def total(records: Iterable[RunRecord], name: str, group: str = "peer") -> int | None:
    """Return the sum of a fact over the records that have it; None where none has."""
    found = facts(records, name, group)
    return round(sum(found)) if found else None


def mapping(record: RunRecord) -> str:
    """Name the cores of a record's tasks, as the study does."""
    cores = (word(record, "producer_core"), word(record, "publisher_core"))
    return MAPPINGS.get(cores, f"sensor {cores[0]}, MQTT {cores[1]}")


def transport(record: RunRecord) -> str:
    return say("transport", word(record, "transport"))


def rate(record: RunRecord) -> str:
    """Name how often was published: "50/s"."""
    return rate_text(whole(record, "interval_us"))


def setting(record: RunRecord) -> str:
    """Name the rate and what differs from the study's usual, transport and cores apart: "50/s, retained"."""
    found = [rate(record)]
    for name, (usual, words) in _USUAL.items():
        value = word(record, name)
        if value and value != usual:
            found.append(words.format(value))
    hold_us = whole(record, "hold_us")
    return ", ".join([*found, *([f"held {hold_us / 1000:g} ms"] if hold_us else [])])


def case_name(record: RunRecord) -> str:
    """Name a case in full: "TLS, unpinned, 50/s"."""
    return ", ".join((transport(record), mapping(record), setting(record)))
