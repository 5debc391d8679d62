# SPDX-License-Identifier: Apache-2.0
"""Faults: lost packets of a connect, cut connections and the order of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from hil.network.ledger.files import Counts, counts_of, sentence_of, total_of
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import median
from hil.reports.studies.mqtt_qos.echoes import BENCH, OK, Echoes, by_setting, others
from hil.reports.studies.records import BoardRun, fact, rate_text, size_text, whole, word

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


def connect_outages(run: BoardRun) -> dict[tuple[str, str], Outage]:
    """Return what lost SYN, CONNECT and CONNACK did, by cause and the client's network timeout."""
    records = [record for record in run.of("reconnect") if word(record, "cause") in CONNECT_CAUSES]
    found = by_setting(records, "cause", "network_timeout_ms", "outage_ms")
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


def connect_table(run: BoardRun) -> Table | None:
    """Return how long the client took to notice and to recover where packets of its connect were lost."""
    rows, data = [], []
    for (cause, setting), found in connect_outages(run).items():
        noticed, recovered = (times_text(ms, found.boots) for ms in (found.noticed_ms, found.recovered_ms))
        tried = (NONE if found.attempts is None else f"{found.attempts:g}", number(found.longest_ms))
        counts = (*tried, f"{found.outages - found.failed} of {found.outages}")
        rows.append((CONNECT_CAUSES[cause], setting, noticed, recovered, *counts))
        data.append(
            {"cause": cause, "setting": setting}
            | {"noticed_ms": list(found.noticed_ms), "recovered_ms": list(found.recovered_ms)}
            | {"failed_attempts": found.attempts, "longest_attempt_ms": found.longest_ms}
            | {"outages": found.outages, "failed": found.failed}
        )
    if not rows:
        return None
    notes = (
        "Each outage ends the connection and then drops the packet named, until it ends; the client "
        "tries again by itself. noticed: from the last message that was acknowledged to the client's own "
        "word that it is disconnected; recovered: from the end of the outage to the next message "
        "acknowledged; failed attempts: connects that came to nothing, mean; the longest of them",
        "the study's client, paho on Python 2, froze in connect() or ended with 'Interrupted system call'",
    )
    columns = (
        "lost",
        "outage / timeout, ms",
        "noticed",
        "recovered",
        "failed attempts",
        "the longest",
        "outages recovered",
    )
    return Table(
        "connect", "Recovery after lost packets of a connect, ms", columns, tuple(rows), notes, tuple(data)
    )


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


def order_table(run: BoardRun) -> Table | None:
    """Return order, duplicates and losses by messages in flight, session and cuts."""
    rows, data = [], []
    for key, own in ordering(run).items():
        inflight, broker_inflight, clean, cut_ms, qos, size, interval_us = (int(str(one)) for one in key)
        late, again = out_of_order(own), duplicates(own)
        name = f"QoS {qos}, {size_text(size)}, {rate_text(interval_us)}"
        session = "new" if clean else "kept"
        cuts = f"each {cut_ms / 1000:g} s" if cut_ms else "none"
        flight = f"{inflight or 'any'} / {broker_inflight or 'any'}"
        counts = (str(late), str(again), f"{own.lost} of {own.n}")
        rows.append((name, flight, session, cuts, own.p50().text, *counts))
        data.append(
            {"qos": qos, "payload_bytes": size, "interval_us": interval_us, "inflight": inflight}
            | {"broker_inflight": broker_inflight, "clean_session": clean, "cut_every_ms": cut_ms}
            | {"p50": own.p50().data, "out_of_order": late, "duplicates": again, "lost": own.lost, "n": own.n}
        )
    if not rows:
        return None
    notes = (
        "in flight: messages unacknowledged that the board / the broker allows. session: kept where "
        "clean_session is 0. cuts: the board's connection is reset so often. out of order: echoes that "
        "came after one of a later message; twice: messages whose echo came more than once. All are told "
        "by the number in the payload",
    )
    columns = ("", "in flight", "session", "cuts", "p50, ms", "out of order", "twice", "lost")
    return Table("order", "Order and duplicates", columns, tuple(rows), notes, tuple(data))


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
    ledger: Counts | None

    def fact(self, name: str) -> float | None:
        """Return the mean of a number that the peer told, None where none did."""
        found = [value for record in self.records if (value := fact(record, "peer", name)) is not None]
        return sum(found) / len(found) if found else None

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


def broker_table(run: BoardRun) -> Table | None:
    """Return what became of the messages where the broker was in trouble."""
    rows, data = [], []
    for one in broker_faults(run):
        ledger, recovery, dropped = one.ledger, one.fact("recovery_us"), one.fact("broker_dropped_messages")
        sent, lost = (str(ledger.sent), str(ledger.lost_count)) if ledger else (NONE, NONE)
        recovered = NONE if recovery is None else recovery_text(recovery)
        where = sentence_of(ledger).partition(": ")[2] if ledger and ledger.lost_count else NONE
        name = one.fault.replace("_", " ") + (f", queue of {one.queue}" if one.queue < _USUAL_QUEUE else "")
        again = str(ledger.duplicates) if ledger else NONE
        rows.append(
            (name, one.persistence, str(one.qos), sent, lost, again, number(one.slowest_ms), recovered, where)
        )
        data.append(
            {"fault": one.fault, "persistence": one.persistence, "qos": one.qos, "broker_queue": one.queue}
            | {"sent": ledger and ledger.sent, "lost": ledger and ledger.lost_count, "recovery_us": recovery}
            | {"dropped_by_broker": dropped, "fault_us": one.fact("fault_us")}
            | {"duplicates": ledger and ledger.duplicates, "slowest_ms": one.slowest_ms, "where": where}
        )
    if not rows:
        return None
    length = sorted({whole(record, "fault_ms") for one in broker_faults(run) for record in one.records})
    notes = (
        "kill: the broker is killed and started again; stall: it is stopped by a signal and goes on; "
        "slow disk: what it persists takes long, by a simulated disk, for the whole case; flood: another "
        "client sends as fast as it can; subscriber away: nobody reads, so the broker's queue fills. A "
        f"fault takes {' or '.join(f'{ms:,}' for ms in length)} ms",
        "persistence: off; on: the broker writes now and then; each: after each change. slowest: the "
        "longest from a message's plan to its acknowledgement (QoS 0: to the call's return), in ms; "
        "recovered: from the fault's end to the first message that came and was planned after it began, "
        "in ms. Who owns a loss: docs/explain/loss-ledger.md",
    )
    columns = ("fault", "persistence", "QoS", "sent", "lost", "twice", "slowest", "recovered", "where")
    return Table("broker", "Messages through a broker in trouble", columns, tuple(rows), notes, tuple(data))


def recovery_text(recovery_us: float) -> str:
    """Return a recovery in ms; below one the clocks of fault and subscriber tell no more."""
    return "< 1" if recovery_us < 1000 else number(recovery_us / 1000)
