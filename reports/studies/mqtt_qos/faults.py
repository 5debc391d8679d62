# SPDX-License-Identifier: Apache-2.0
"""Faults: lost packets of a connect, cut connections and the order of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from hil.network.ledger.files import LedgerCounts, counts_of, sentence_of, total_of
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import median
from hil.reports.studies.layout import lay_out
from hil.reports.studies.mqtt_qos.echoes import BENCH, OK, Echoes, by_setting, others
from hil.reports.studies.records import BoardRun, mean_fact, rate_text, size_text, whole, word

CONNECT_CAUSES = {"syn": "SYN", "connect": "CONNECT", "connack": "CONNACK"}
_ORDERING = ("inflight", "broker_inflight", "clean_session", "cut_every_ms")
_TIMEOUT = 1


@dataclass(frozen=True)
class Outage:
    """Outages of one cause: times in ms, of those that recovered; ``failed`` did not in time."""

    cause: str
    noticed_ms: tuple[float, ...]
    recovered_ms: tuple[float, ...]
    boots: tuple[int, ...]
    attempts: float | None
    longest_ms: float | None
    outages: int
    failed: int


def connect_outages(records: Iterable[RunRecord]) -> dict[tuple[str, str], Outage]:
    """Return what lost SYN, CONNECT and CONNACK did, by cause and the client's network timeout."""
    known = [record for record in records if word(record, "cause") in CONNECT_CAUSES]
    found = by_setting(known, "cause", "network_timeout_ms", "outage_ms")
    order = list(CONNECT_CAUSES)
    return {
        (f"{cause}", f"{outage} / {timeout}"): _outage(str(cause), own.records)
        for (cause, timeout, outage), own in sorted(
            found.items(), key=lambda one: order.index(str(one[0][0]))
        )
    }


def _outage(cause: str, records: Sequence[RunRecord]) -> Outage:
    rows = [
        (record.boot_index, dict(zip(record.columns, values, strict=True)))
        for record in records
        for values in zip(*(column[record.warmup_rows :] for column in record.columns.values()), strict=True)
    ]
    failed = sum(row["outcome"] == _TIMEOUT for _, row in rows)
    done = [(boot, row) for boot, row in rows if row["outcome"] == OK]
    attempts = [row["connects_failed"] for _, row in done if "connects_failed" in row]
    longest = [row["connect_failed_max_us"] / 1000 for _, row in done if row.get("connect_failed_max_us")]
    return Outage(
        cause,
        tuple(row.get("detected_us", 0) / 1000 for _, row in done),
        tuple((row["gap_us"] - row["outage_us"]) / 1000 for _, row in done),
        tuple(boot for boot, _ in done),
        sum(attempts) / len(attempts) if attempts else None,
        max(longest, default=None),
        len(done) + failed,
        failed,
    )


def connect_table(study: Study, run: BoardRun) -> Table | None:
    """Return how long the client took to notice and to recover where packets of its connect were lost."""
    lines = []
    for (cause, setting), found in connect_outages(run.of("reconnect")).items():
        noticed, recovered = (times_text(ms, found.boots) for ms in (found.noticed_ms, found.recovered_ms))
        tried = NONE if found.attempts is None else f"{found.attempts:g}"
        lines.append(
            {"lost": CONNECT_CAUSES[cause], "cause": cause, "setting": setting, "noticed": noticed}
            | {
                "recovered": recovered,
                "tried": tried,
                "of": f"{found.outages - found.failed} of {found.outages}",
            }
            | {"noticed_ms": list(found.noticed_ms), "recovered_ms": list(found.recovered_ms)}
            | {"failed_attempts": found.attempts, "longest_attempt_ms": found.longest_ms}
            | {"outages": found.outages, "failed": found.failed}
        )
    return lay_out(study, "connect", lines)


def times_text(times_ms: Sequence[float], boots: Sequence[int]) -> str:
    """Return the median with its interval; fewer than five times one by one."""
    found = median(times_ms, boots)
    return found.text if found.value is not None else "; ".join(map(number, times_ms)) or NONE


def ordering(run: BoardRun) -> dict[tuple[object, ...], Echoes]:
    """Return the messages by what may change their order, by QoS, payload and rate."""
    records = [record for record in run.of(BENCH) if not others(record, *_ORDERING)]
    found = by_setting(records, *_ORDERING, "qos", "payload_bytes", "interval_us")
    if len({key[:4] for key in found}) < 2:
        return {}
    asked = {key[4:] for key in found if key[:4] != _USUAL_ORDER}
    return {key: own for key, own in found.items() if key[4:] in asked}


_USUAL_ORDER = (0, 20, 1, 0)


def order_table(study: Study, run: BoardRun) -> Table | None:
    """Return order, duplicates and losses by messages in flight, session and cuts."""
    lines = []
    for key, own in ordering(run).items():
        inflight, broker_inflight, clean, cut_ms, qos, size, interval_us = (int(str(one)) for one in key)
        case = {"qos": qos, "payload_bytes": size, "interval_us": interval_us, "inflight": inflight}
        case |= {"broker_inflight": broker_inflight, "clean_session": clean, "cut_every_ms": cut_ms}
        words = {"name": f"QoS {qos}, {size_text(size)}, {rate_text(interval_us)}"}
        words |= {"flight": f"{inflight or 'any'} / {broker_inflight or 'any'}"}
        words |= {"session": "new" if clean else "kept", "gone": f"{own.lost} of {own.n}"}
        words |= {"cuts": f"each {cut_ms / 1000:g} s" if cut_ms else "none"}
        found = {"p50": own.p50(), "out_of_order": out_of_order(own), "duplicates": duplicates(own)}
        lines.append({**words, **case, **found, "lost": own.lost, "n": own.n})
    return lay_out(study, "order", lines)


def out_of_order(found: Echoes) -> int:
    """Return how many first echoes came after that of a message that was sent later."""
    late = 0
    for record in found.records:
        behind = len(record.columns["order"]) + 1
        for order in reversed(record.columns["order"][record.warmup_rows :]):
            late += order > behind
            behind = min(behind, order) if order else behind
    return late


def duplicates(found: Echoes) -> int:
    """Return how many messages had their echo more than once."""
    return sum(
        copies > 1 for record in found.records for copies in record.columns["copies"][record.warmup_rows :]
    )


_NO_FAULT = "none"
_USUAL_QUEUE = 1000


@dataclass(frozen=True)
class BrokerFault:
    """The deliveries of one kind of trouble. ``ledger`` is None where the peer told none."""

    fault: str
    persistence: str
    qos: int
    queue: int
    records: tuple[RunRecord, ...]
    ledger: LedgerCounts | None

    def fact(self, name: str) -> float | None:
        """Return the mean of a number that the peer told, None where none did."""
        return mean_fact(self.records, name)

    @property
    def slowest_ms(self) -> float | None:
        """The longest from a message's plan to its acknowledgement, None where none had one."""
        took = [
            done - planned
            for record in self.records
            for planned, done, outcome in zip(
                *(record.columns[name] for name in ("planned_us", "done_us", "outcome")), strict=True
            )
            if outcome == OK
        ]
        return max(took) / 1000 if took else None

    @property
    def made(self) -> bool:
        """Whether the fault took place: one that lasts the whole case is never counted."""
        return self.fault == "slow_disk" or bool(self.fact("faults_count"))


def broker_faults(run: BoardRun) -> list[BrokerFault]:
    """Return the deliveries with a fault, by fault and persistence."""
    records = [record for record in run.of("delivery") if word(record, "fault") not in ("", _NO_FAULT)]
    found = []
    for (kind, persistence, qos, queue), own in by_setting(
        records, "fault", "persistence", "qos", "broker_queue"
    ).items():
        ledgers = [counts_of(record.environment.get("peer", {})) for record in own.records]
        known = [one for one in ledgers if one is not None]
        total = total_of(known) if known and len(known) == len(ledgers) else None
        found.append(
            BrokerFault(str(kind), str(persistence), int(str(qos)), int(str(queue)), own.records, total)
        )
    return found


def broker_table(study: Study, run: BoardRun) -> Table | None:
    """Return what became of the messages where the broker was in trouble."""
    lines = []
    for one in broker_faults(run):
        ledger, recovery = one.ledger, one.fact("recovery_us")
        name = one.fault.replace("_", " ") + (f", queue of {one.queue}" if one.queue < _USUAL_QUEUE else "")
        where = sentence_of(ledger).partition(": ")[2] if ledger and ledger.lost_count else NONE
        lines.append(
            {"name": name, "fault": one.fault, "persistence": one.persistence, "qos": one.qos}
            | {
                "broker_queue": one.queue,
                "sent": ledger and ledger.sent,
                "lost": ledger and ledger.lost_count,
            }
            | {"duplicates": ledger and ledger.duplicates, "slowest_ms": one.slowest_ms, "where": where}
            | {"recovered": NONE if recovery is None else recovery_text(recovery), "recovery_us": recovery}
            | {"dropped_by_broker": one.fact("broker_dropped_messages"), "fault_us": one.fact("fault_us")}
        )
    lengths = sorted({whole(record, "fault_ms") for one in broker_faults(run) for record in one.records})
    return lay_out(study, "broker", lines, lengths=" or ".join(f"{ms:,}" for ms in lengths))


def recovery_text(recovery_us: float) -> str:
    """Return a recovery in ms; below one the clocks of fault and subscriber tell no more."""
    return "< 1" if recovery_us < 1000 else number(recovery_us / 1000)
