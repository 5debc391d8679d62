"""Round trips by payload, QoS and rate, beside those with two brokers that were published."""

from __future__ import annotations

from collections.abc import Mapping

from hil.model import NotRun
from hil.reference import Row, Study
from hil.reference import Table as Published
from reports.reproduction.comparison import table_notes
from reports.reproduction.document import NONE, NOT_MEASURED, Table, number
from reports.reproduction.qos_echoes import (
    BENCH,
    NO_ECHOES,
    RATE_US,
    Echoes,
    by_setting,
    plain,
    selected,
    size_text,
)
from reports.reproduction.qos_text import echo_cells, echo_data, milliseconds, missing_notes, rates_note
from reports.reproduction.records import BoardRun

NO_MEMORY = "not run: memory"
_LIMIT = "max_payload_bytes"
_USUAL_US = 100_000  # 10 messages a second: the rate of the sweep over payloads


def usual_rate(found: Echoes) -> Echoes:
    """Return the messages at 10 a second; where there are none, those at the slowest rate."""
    rates = by_setting(found.records, RATE_US)
    return rates.get((_USUAL_US,)) or next(reversed(rates.values()), NO_ECHOES)


def payload_table(study: Study, run: BoardRun) -> Table:
    """Return each payload and QoS: published with either broker, then ours."""
    pi, desktop = study.table("payload-pi"), study.table("payload-desktop")
    slow = {row.label: row for row in pi.rows}
    rows, data, missing, shown = [], [], [], []
    for row in desktop.rows:
        with_pi = slow.get(row.label)
        ours = usual_rate(selected(run, row.ours))
        shown.append(ours)
        head = (row.label, milliseconds(with_pi), milliseconds(row))
        published = {"label": row.label, "published_pi_ms": _ms(with_pi), "published_desktop_ms": _ms(row)}
        if ours.n:
            rows.append((*head, *echo_cells(ours)))
        else:
            why = run.why_missing(row.ours) if row.ours else "nothing of ours compares"
            rows.append((*head, NO_MEMORY if _LIMIT in why else NOT_MEASURED, *[NONE] * 3, "0", NONE))
            missing.append((row.label, why))
        data.append({**published, **echo_data(ours)})
    notes = [
        *(note for published in (desktop, pi) for note in table_notes(published)),
        *(note for published in (desktop, pi) for note in _corrections(published)),
        *rates_note(shown),
        *missing_notes(missing),
    ]
    columns = ("", "published: Pi", "desktop", "ours, their way", "p50", "p95", "p99", "n", "lost")
    title = "Round trip by payload and QoS, ms"
    return Table("payload", title, columns, tuple(rows), tuple(notes), tuple(data))


def _ms(row: Row | None) -> float | None:
    return None if row is None or row.published is None else 1000 * row.published


def _corrections(published: Published) -> list[str]:
    return [
        f"{row.label}, corrected to {number(1000 * row.corrected)} ms: {row.why}."
        for row in published.rows
        if row.corrected is not None
    ]


def by_payload(run: BoardRun) -> Mapping[tuple[int, int], Echoes]:
    """Return the messages in which nothing else varies, by payload in bytes and QoS, at the usual rate."""
    found = by_setting(plain(run), "payload_bytes", "qos")
    return {(int(str(size)), int(str(qos))): usual_rate(own) for (size, qos), own in found.items()}


def not_run_table(run: BoardRun) -> Table | None:
    """Return the cases that the board's memory leaves out, with the reason that its rack file gives."""
    rows, data = [], []
    for trouble in run.troubles:
        bench, _, pairs = trouble.case_id.partition("/")
        if bench != BENCH or not isinstance(trouble, NotRun) or _LIMIT not in trouble.reason:
            continue
        parameters = dict(pair.partition("=")[::2] for pair in pairs.split(","))
        size, qos = int(parameters.get("payload_bytes", 0)), parameters.get("qos", "")
        rows.append((f"{size_text(size)}, QoS {qos}", NO_MEMORY, trouble.reason))
        data.append({"payload_bytes": size, "qos": qos, "reason": trouble.reason})
    if not rows:
        return None
    columns = ("", "ours", "because")
    return Table("not-run", "Payloads that this board leaves out", columns, tuple(rows), (), tuple(data))


def rate_table(run: BoardRun) -> Table | None:
    """Return what was asked for, offered and achieved, where a payload has several rates or one is off."""
    rows, data, hidden = [], [], 0
    for (size, qos), own in by_setting(plain(run), "payload_bytes", "qos").items():
        rates = by_setting(own.records, RATE_US)
        for (interval_us,), at in reversed(rates.items()):
            found = {name: at.fact(f"{name}_mps") for name in ("requested", "offered", "achieved")}
            off = off_by(at)
            if len(rates) == 1 and not off:
                hidden += 1
                continue
            label = f"{size_text(int(str(size)))}, QoS {qos}"
            figures = (number(found[name]) for name in found)
            rows.append((label, *figures, off, at.p50().text, str(at.n)))
            data.append({"payload_bytes": size, "qos": qos, "interval_us": interval_us, **found, "off": off})
    if not rows:
        return None
    columns = ("", "requested", "offered", "achieved", "", "p50, ms", "n")
    notes = (
        "requested: the rate of the case; offered: what the board's open loop planned and attempted; "
        "achieved: what was echoed. OFF: either is more than 2 % away from what was asked; with few "
        "messages, one that is late is more than that. A random schedule is held to what it drew",
        "the study's rate of 100 was 10 in part of its data, as its source sleeps 0.1 s; and its sleep comes "
        "after each message, so it sent 59 to 60 of 60 and 598 of 600",
        *([f"{hidden} more settings, each with one rate, kept to it"] if hidden else []),
    )
    return Table("rates", "Rates, messages a second", columns, tuple(rows), notes, tuple(data))


def off_by(found: Echoes) -> str:
    """Return "OFF" where the peer found a rate off what was asked for in any record, "" where in none."""
    told = [record.environment.get("peer", {}).get("rate_off") for record in found.records]
    return "OFF" if any(told) else ""
