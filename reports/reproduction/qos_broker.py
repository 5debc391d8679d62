"""Brokers in trouble: what was lost, how late the slowest message was, and how long recovery took."""

from __future__ import annotations

from dataclasses import dataclass

from hil.model import RunRecord
from hil.network.ledger.words import Counts, counts_of, sentence_of, total_of
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.qos_echoes import OK, by_setting
from reports.reproduction.records import BoardRun, fact, whole, word

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

    @property
    def has_recovered(self) -> bool:
        """Whether a message that was planned after a fault began arrived in each record."""
        return all(fact(record, "peer", "recovery_us") is not None for record in self.records)


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
        "in ms. Who owns a loss: docs/loss-ledger.md",
    )
    columns = ("fault", "persistence", "QoS", "sent", "lost", "twice", "slowest", "recovered", "where")
    return Table("broker", "Messages through a broker in trouble", columns, tuple(rows), notes, tuple(data))


def recovery_text(recovery_us: float) -> str:
    """Return a recovery in ms; below one the clocks of fault and subscriber tell no more."""
    return "< 1" if recovery_us < 1000 else number(recovery_us / 1000)
