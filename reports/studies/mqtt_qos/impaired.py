# SPDX-License-Identifier: Apache-2.0
"""Bandwidth limits and loss: published, without its error of units, and ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from hil.model import RunRecord, Scalar
from hil.reports.studies.comparison import table_notes
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Line, Picture, Table, number
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    NO_ECHOES,
    RATE_US,
    Echoes,
    by_setting,
    difftime_number,
    echo_cells,
    echo_data,
    milliseconds,
    missing_notes,
    others,
    rates_note,
    selected,
)
from hil.reports.studies.records import BoardRun, fact, rate_text, size_text, whole, word

_Lines = list[tuple[tuple[str, ...], dict[str, object]]]
_LIMITS = ("rate_up_kbit", "rate_down_kbit")
_LOSSES = ("loss_up_ppm", "loss_down_ppm")
_PATTERN = "loss_pattern"
_FALL_MS = 1000.0  # what a round trip must be faster than the one before it to count as a collapse
_GROWN = 4.0  # times the first round trips: a queue grows
_FEW = 5
_GIVES_UP = (
    "connects: how often the board connected, in a case. esp-mqtt gives up a connection on which a message "
    "that comes in stands still for a second (its poll), or that takes nothing for its network timeout; at "
    "QoS 0 what is under way then is gone, so one gap may leave a whole row without an echo"
)
_MINUTE_MS = 60_000


def limited(run: BoardRun) -> list[RunRecord]:
    """Return the records with a bandwidth limit and no other impairment."""
    found = [record for record in run.of(BENCH) if not others(record, *_LIMITS, "air")]
    return [record for record in found if any(whole(record, name) for name in _LIMITS)]


def lossy(run: BoardRun) -> list[RunRecord]:
    """Return the records with loss and no other impairment."""
    found = [record for record in run.of(BENCH) if not others(record, *_LOSSES, "air")]
    return [record for record in found if any(whole(record, name) for name in _LOSSES)]


def bandwidth_table(study: Study, run: BoardRun) -> Table:
    """Return each limit and QoS: published and true, then ours at each rate of messages."""
    published = study.table("bandwidth")
    lines: list[tuple[tuple[int, int], _Lines]] = []
    missing = []
    known: set[int] = set()
    for row in published.rows:
        ours = selected(run, row.ours)
        known |= set(map(id, ours.records))
        true = NONE if row.published is None else number(1000 * (row.corrected or row.published))
        head: tuple[str, ...] = (*_limit_cells(row), milliseconds(row), true)
        numbers = {"label": row.label, "published_ms": _ms(row.published), "true_ms": _ms(row.corrected)}
        found = _at_each_rate(ours, head, numbers)
        if not found:
            found = [((*head, NOT_MEASURED, *[NONE] * 2, "0", NONE), {**numbers, **echo_data(NO_ECHOES)})]
            missing.append((row.label, run.why_missing(row.ours) if row.ours else "nothing compares"))
        lines.append((_limit_of(row), found))
    rest = [record for record in limited(run) if id(record) not in known]
    for (up, down, qos, _size), own in by_setting(rest, *_LIMITS, "qos", "payload_bytes").items():
        head = (_rate_of(int(str(up)), int(str(down))), f"{up}" if up == down else f"{up}/{down}", str(qos))
        numbers = {"label": f"{up} kbit/s up, {down} down, QoS {qos}"}
        key = (int(str(up)), int(str(qos)))
        lines.append((key, _at_each_rate(own, (*head, NONE, NONE), numbers)))
    lines.sort(key=lambda one: one[0])
    rows, data = zip(*(line for _, found in lines for line in found), strict=True)
    notes = [
        *table_notes(published),
        "limit: KB/s and MB/s are thousands and millions of bytes a second, as tc's kbps and mbps in the "
        "study; beside it the same in kbit/s. Ours is set for each direction of the board's link, so a "
        "message and its echo each cross it once",
        "true: the published mean without the error of units, from the study's own logs",
        *missing_notes(missing),
    ]
    columns = ("limit", "kbit/s", "QoS", "published", "true", "ours, their way", "p50", "p95", "n", "lost")
    title = "Round trip of 10 KB under a bandwidth limit, ms"
    picture = fin_picture(run)
    return Table("bandwidth", title, columns, rows, tuple(notes), data, picture=picture)


def _at_each_rate(ours: Echoes, head: tuple[str, ...], numbers: Mapping[str, object]) -> _Lines:
    """Return a row of ours for each rate of messages; the study's mean is one over all of them."""
    rates = by_setting(ours.records, RATE_US)
    found: _Lines = []
    for (interval_us,), own in reversed(rates.items()):
        cells = echo_cells(own)
        at = f"at {rate_text(int(str(interval_us)))}" if len(rates) > 1 else ""
        row = (f"{head[0]} {at}".strip(), *head[1:], *cells[:3], *cells[4:])
        found.append((row, {**numbers, "interval_us": interval_us, **echo_data(own)}))
        head = ("", *[""] * (len(head) - 1))
    return found


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _limit_of(row: Row) -> tuple[int, int]:
    """Return limit in kbit/s and QoS, the table's order."""
    case = row.ours.case if row.ours else {}
    return int(str(case.get("rate_up_kbit", (0,))[0])), int(str(case.get("qos", (0,))[0]))


def _limit_cells(row: Row) -> tuple[str, str, str]:
    """Return limit, the same in kbit/s, and QoS."""
    kbit, qos = _limit_of(row)
    return row.label.partition(",")[0], f"{kbit:,}", str(qos)


def _rate_of(up_kbit: int, down_kbit: int) -> str:
    return " / ".join(map(speed_text, dict.fromkeys((up_kbit, down_kbit))))


def speed_text(kbit: int) -> str:
    """Return "100 KB/s" for 800 kbit/s, "1 MB/s" for 8000."""
    return f"{kbit / 8000:,.4g} MB/s" if kbit >= 8000 else f"{kbit / 8:,.4g} KB/s"


def observation_table(study: Study, run: BoardRun) -> Table:
    """Return how many messages had an echo at each rate, published and ours."""
    published = study.table("observations")
    rows, data, notes = [], [], table_notes(published)
    for row in published.rows:
        ours = selected(run, row.ours)
        corrected = NONE if row.corrected is None else f"{row.corrected:,g}"
        mine = f"{ours.answered} of {ours.n}" if ours.n else NOT_MEASURED
        rows.append((row.label, f"{row.published:,g} of {row.of}", corrected, mine))
        data.append(
            {"label": row.label, "published": row.published, "of": row.of, "corrected": row.corrected}
            | {"ours": ours.answered, "ours_of": ours.n}
        )
    notes += [f"{row.label}: {row.why}." for row in published.rows if row.why]
    notes += [f"at 100/s: {row.defect}." for row in published.rows[:3] if row.defect]
    columns = ("", "published", "corrected", "ours")
    return Table("observations", published.title, columns, tuple(rows), tuple(notes), tuple(data))


def loss_table(study: Study, run: BoardRun) -> Table:
    """Return each loss rate and QoS: published, then ours by pattern and direction."""
    published = study.table("loss")
    rows, data, missing = [], [], []
    known: set[int] = set()
    for row in published.rows:
        ours = selected(run, row.ours)
        known |= set(map(id, ours.records))
        head = (row.label, milliseconds(row), f"{row.n} of {published.n}")
        numbers = {"label": row.label, "published_ms": _ms(row.published), "published_n": row.n}
        for (pattern,), own in reversed(by_setting(ours.records, _PATTERN).items()):
            rows.append((*head, str(pattern), *_loss_cells(own)))
            data.append({**numbers, "pattern": pattern, "connects": _connects(own), **echo_data(own)})
            head = ("", "", "")
        if not ours.n:
            rows.append((*head, NOT_MEASURED, *[NONE] * 3, "0", NONE))
            data.append({**numbers, "pattern": None, "connects": [], **echo_data(NO_ECHOES)})
            missing.append((row.label, run.why_missing(row.ours) if row.ours else "nothing compares"))
    for key, own in _unpublished(run, known).items():
        up, down, pattern, size, qos = map(str, key)
        label = f"↑ {int(up) / 1e4:g} %, ↓ {int(down) / 1e4:g} %, {size_text(int(size))}, QoS {qos}"
        rows.append((label, NONE, NONE, pattern, *_loss_cells(own)))
        data.append({"label": label, "pattern": pattern, "connects": _connects(own), **echo_data(own)})
    notes = [
        *table_notes(published),
        *_hops(run),
        *_bursts(run),
        _GIVES_UP,
        *rates_note([Echoes(tuple(lossy(run)))]),
        *missing_notes(missing),
    ]
    columns = (
        "",
        "published",
        "answered",
        "pattern",
        "ours, their way",
        "p50",
        "p95",
        "answered",
        "connects",
    )
    title = "Round trip of 10 KB under loss, ms"
    return Table("loss", title, columns, tuple(rows), tuple(notes), tuple(data))


def _unpublished(run: BoardRun, known: set[int]) -> Mapping[tuple[Scalar, ...], Echoes]:
    rest = [record for record in lossy(run) if id(record) not in known]
    return by_setting(rest, *_LOSSES, _PATTERN, "payload_bytes", "qos")


def _loss_cells(found: Echoes) -> tuple[str, ...]:
    theirs, p50, p95, *_ = echo_cells(found)
    return (theirs, p50, p95, f"{found.answered} of {found.n}", _connects_text(found))


def _connects(found: Echoes) -> list[int]:
    """Return how often the board connected, case by case, where it said so."""
    told = (fact(record, "device", "connects") for record in found.records)
    return [round(count) for count in told if count is not None]


def _connects_text(found: Echoes) -> str:
    counts = _connects(found)
    if not counts:
        return NONE
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _hops(run: BoardRun) -> list[str]:
    """Say which hops are impaired, in the peer's words, once for each pattern."""
    found = {
        word(record, _PATTERN): text for record in lossy(run) if (text := Echoes((record,)).told("impaired"))
    }
    head = (
        "the study's loss hits four hops of a message and its echo, ours two: the board's uplink and downlink"
    )
    return [head, *(f"{pattern}, as set for one of the cases: {text}" for pattern, text in found.items())]


def _bursts(run: BoardRun) -> list[str]:
    """Say how long a burst is, where the virtual air lost frames in bursts."""
    if run.kind != "virtual" or all(word(record, _PATTERN) != "bursts" for record in lossy(run)):
        return []
    return [
        "bursts: counted in frames, not in time, so where TCP backs off a burst lasts for several of its "
        "retransmissions, that is for seconds"
    ]


def saturated(run: BoardRun) -> list[Echoes]:
    """Return the limited records in which the wait grows: more was offered than the limit carries."""
    return [own for record in limited(run) if _grows(own := Echoes((record,)))]


def _grows(found: Echoes) -> bool:
    times = [ms for ms in found.response_ms if math.isfinite(ms)]
    if len(times) < 2 * _FEW:
        return False
    return sum(times[-_FEW:]) > _GROWN * sum(times[:_FEW])


def collapses(times_ms: Sequence[float]) -> int:
    """Return how many echoes took at least a second less than the one before them."""
    seen = [ms for ms in times_ms if math.isfinite(ms)]
    return sum(after < before - _FALL_MS for before, after in itertools.pairwise(seen))


def fin_picture(run: BoardRun) -> Picture | None:
    """Return plan to echo of the record that grew the longest, true and as R's difftime() counts it."""
    grown = saturated(run)
    if not grown:
        return None
    found = max(grown, key=lambda one: max(ms for ms in one.response_ms if math.isfinite(ms)))
    points = [(float(n), ms) for n, ms in enumerate(found.response_ms, 1) if math.isfinite(ms)]
    true = Line("true", "stat-p95", tuple((n, ms, None, None) for n, ms in points))
    theirs = tuple(
        (n, 1000 * difftime_number(int(ms)) if ms >= _MINUTE_MS else ms, None, None) for n, ms in points
    )
    record = found.records[0]
    at = f"{whole(record, 'rate_up_kbit'):,} kbit/s, QoS {word(record, 'qos')}"
    title = f"from plan to echo at {at}"
    differs = any(one[1] != ms for one, (_, ms) in zip(theirs, points, strict=True))
    lines = (true, Line("in R's units", "stat-tail5", theirs)) if differs else (true,)
    return Picture(title, "message", lines)
