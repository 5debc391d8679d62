# SPDX-License-Identifier: Apache-2.0
"""Faults: lost packets of a connect, cut connections and the order of messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hil.model import RunRecord, Scalar
from hil.network.ledger.files import LedgerCounts, counts_of, sentence_of, total_of
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import median
from hil.reports.studies.layout import Figures, lay_out
from hil.reports.studies.mqtt_qos.echoes import BENCH, OK, Echoes, by_setting, others
from hil.reports.studies.records import BoardRun, rate_text, size_text, whole, word

CONNECT_CAUSES = {"syn": "SYN", "connect": "CONNECT", "connack": "CONNACK"}
_ORDERING = ("inflight", "broker_inflight", "clean_session", "cut_every_ms")
TIMEOUT = 1


def outages_of(records: Iterable[RunRecord]) -> list[tuple[int, Mapping[str, int]]]:
    """Return the outages that the client recovered from, or did not in time, each with its boot."""
    rows = [
        (record.boot_index, dict(zip(record.columns, values, strict=True)))
        for record in records
        for values in zip(*(column[record.warmup_rows :] for column in record.columns.values()), strict=True)
    ]
    return [(boot, row) for boot, row in rows if row["outcome"] in (OK, TIMEOUT)]


def connect_table(study: Study, run: BoardRun) -> Table | None:
    """Return how long the client took to notice and to recover where packets of its connect were lost."""
    lines = []
    for cause, lost in CONNECT_CAUSES.items():
        records = [record for record in run.of("reconnect") if word(record, "cause") == cause]
        for (timeout, outage), own in by_setting(records, "network_timeout_ms", "outage_ms").items():
            line = {"lost": lost, "cause": cause, "setting": f"{outage} / {timeout}"}
            lines.append(line | _recovery(outages_of(own.records)))
    return lay_out(study, "connect", lines)


def _recovery(rows: Sequence[tuple[int, Mapping[str, int]]]) -> Figures:
    done = [row for _, row in rows if row["outcome"] == OK]
    boots = [boot for boot, row in rows if row["outcome"] == OK]
    noticed = [row.get("detected_us", 0) / 1000 for row in done]
    recovered = [(row["gap_us"] - row["outage_us"]) / 1000 for row in done]
    attempts = [row["connects_failed"] for row in done if "connects_failed" in row]
    longest = [row["connect_failed_max_us"] / 1000 for row in done if row.get("connect_failed_max_us")]
    return {
        "noticed": times_text(noticed, boots),
        "recovered": times_text(recovered, boots),
        "tried": f"{sum(attempts) / len(attempts):g}" if attempts else NONE,
        "longest_attempt_ms": max(longest, default=None),
        "of": f"{len(done)} of {len(rows)}",
        "outages": len(rows),
        "failed": len(rows) - len(done),
    }


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


def broker_faults(run: BoardRun) -> dict[tuple[Scalar, ...], Echoes]:
    """Return the deliveries with a fault by fault, persistence, QoS and queue."""
    records = [record for record in run.of("delivery") if word(record, "fault") not in ("", _NO_FAULT)]
    return by_setting(records, "fault", "persistence", "qos", "broker_queue")


def ledger_of(found: Echoes) -> LedgerCounts | None:
    """Return what the ledgers come to; None where a record has none."""
    ledgers = [counts_of(record.environment.get("peer", {})) for record in found.records]
    known = [one for one in ledgers if one is not None]
    return total_of(known) if known and len(known) == len(ledgers) else None


def slowest_ms(found: Echoes) -> float | None:
    """Return the longest from a message's plan to its acknowledgement; None where none had one."""
    took = [
        done - planned
        for record in found.records
        for planned, done, outcome in zip(
            *(record.columns[name] for name in ("planned_us", "done_us", "outcome")), strict=True
        )
        if outcome == OK
    ]
    return max(took) / 1000 if took else None


def broker_table(study: Study, run: BoardRun) -> Table | None:
    """Return what became of the messages where the broker was in trouble."""
    lines = []
    for (fault, persistence, qos, queue), own in broker_faults(run).items():
        ledger, recovery = ledger_of(own), own.fact("recovery_us")
        name = str(fault).replace("_", " ")
        name += f", queue of {queue}" if int(str(queue)) < _USUAL_QUEUE else ""
        where = sentence_of(ledger).partition(": ")[2] if ledger and ledger.lost_count else NONE
        lines.append(
            {"name": name, "fault": fault, "persistence": persistence, "qos": qos, "broker_queue": queue}
            | {"sent": ledger and ledger.sent, "lost": ledger and ledger.lost_count}
            | {"duplicates": ledger and ledger.duplicates}
            | {"slowest_ms": slowest_ms(own), "where": where, "recovery_us": recovery}
            | {"recovered": NONE if recovery is None else recovery_text(recovery)}
            | {"dropped_by_broker": own.fact("broker_dropped_messages"), "fault_us": own.fact("fault_us")}
        )
    faults = (record for own in broker_faults(run).values() for record in own.records)
    lengths = sorted({whole(record, "fault_ms") for record in faults})
    return lay_out(study, "broker", lines, lengths=" or ".join(f"{ms:,}" for ms in lengths))


def recovery_text(recovery_us: float) -> str:
    """Return a recovery in ms; below one the clocks of fault and subscriber tell no more."""
    return "< 1" if recovery_us < 1000 else number(recovery_us / 1000)
