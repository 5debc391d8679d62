# SPDX-License-Identifier: Apache-2.0
"""Bandwidth limits and loss: published, without its error of units, and ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hil.model import RunRecord, Scalar
from hil.reports.studies.comparison import corrected_text, published_text, table_notes, why_missing
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Line, Picture, Table
from hil.reports.studies.layout import Figures, published_table
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    NO_ECHOES,
    RATE_US,
    Echoes,
    by_setting,
    difftime_number,
    echo_line,
    missing_notes,
    others,
    published_ms,
    rates_note,
    selected,
)
from hil.reports.studies.records import BoardRun, fact, rate_text, size_text, whole, word

_LIMITS = ("rate_up_kbit", "rate_down_kbit")
_LOSSES = ("loss_up_ppm", "loss_down_ppm")
_PATTERN = "loss_pattern"
_FALL_MS = 1000.0  # what a round trip must be faster than the one before it to count as a collapse
_GROWN = 4.0  # times the first round trips: a queue grows
_FEW = 5
_MINUTE_MS = 60_000


def limited(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return the records with a bandwidth limit and no other impairment."""
    found = [record for record in records if not others(record, *_LIMITS, "air")]
    return [record for record in found if any(whole(record, name) for name in _LIMITS)]


def lossy(run: BoardRun) -> list[RunRecord]:
    """Return the records with loss and no other impairment."""
    found = [record for record in run.of(BENCH) if not others(record, *_LOSSES, "air")]
    return [record for record in found if any(whole(record, name) for name in _LOSSES)]


def bandwidth_table(study: Study, run: BoardRun) -> Table:
    """Return each limit and QoS: published and true, then ours at each rate of messages."""
    published = study.table("bandwidth")
    lines: list[Figures] = []
    missing = []
    known: set[int] = set()
    for row in published.rows:
        ours = selected(run, row.ours)
        known |= set(map(id, ours.records))
        kbit, qos = _limit_of(row)
        true = None if row.published is None else 1000 * (row.corrected or row.published)
        head: Figures = {"label": row.label, "published_ms": published_ms(row), "true": true}
        head |= {"true_ms": None if row.corrected is None else 1000 * row.corrected}
        head |= {"limit": row.label.partition(",")[0], "kbit": f"{kbit:,}", "qos": qos, "order": (kbit, qos)}
        lines += _at_each_rate(ours, head) or [{**head, **echo_line(NO_ECHOES)}]
        missing += [] if ours.n else [(row.label, why_missing(run, row))]
    rest = [record for record in limited(run.of(BENCH)) if id(record) not in known]
    for (up, down, level, _size), own in by_setting(rest, *_LIMITS, "qos", "payload_bytes").items():
        head = {
            "label": f"{up} kbit/s up, {down} down, QoS {level}",
            "kbit": f"{up}" if up == down else f"{up}/{down}",
        }
        head |= {
            "limit": _rate_of(int(str(up)), int(str(down))),
            "qos": level,
            "order": (int(str(up)), int(str(level))),
        }
        lines += _at_each_rate(own, head)
    lines.sort(key=lambda line: line["order"])
    found = published_table(study, "bandwidth", published, lines, table_notes(published))
    return replace(found, notes=(*found.notes, *missing_notes(missing)), picture=fin_picture(run))


def _at_each_rate(ours: Echoes, head: Figures) -> list[Figures]:
    """Return a line of ours for each rate of messages; the study's mean is one over all of them."""
    rates = by_setting(ours.records, RATE_US)
    limit = head["limit"]
    found: list[Figures] = []
    for (interval_us,), own in reversed(rates.items()):
        at = f"{limit} at {rate_text(int(str(interval_us)))}".strip() if len(rates) > 1 else limit
        found.append({**head, "limit": at, "interval_us": interval_us, **echo_line(own)})
        limit = ""
    return found


def _limit_of(row: Row) -> tuple[int, int]:
    """Return limit in kbit/s and QoS, the table's order."""
    case = row.ours.case if row.ours else {}
    return int(str(case.get("rate_up_kbit", (0,))[0])), int(str(case.get("qos", (0,))[0]))


def _rate_of(up_kbit: int, down_kbit: int) -> str:
    return " / ".join(map(speed_text, dict.fromkeys((up_kbit, down_kbit))))


def speed_text(kbit: int) -> str:
    """Return "100 KB/s" for 800 kbit/s, "1 MB/s" for 8000."""
    return f"{kbit / 8000:,.4g} MB/s" if kbit >= 8000 else f"{kbit / 8:,.4g} KB/s"


def observation_table(study: Study, run: BoardRun) -> Table:
    """Return how many messages had an echo at each rate, published and ours."""
    published = study.table("observations")
    lines = []
    for row in published.rows:
        ours = selected(run, row.ours)
        line = {"label": row.label, "published": row.published, "of": row.of, "corrected": row.corrected}
        line |= {
            "shown": published_text(row),
            "right": corrected_text(row),
            "ours": ours.answered,
            "ours_of": ours.n,
        }
        lines.append(line | {"mine": f"{ours.answered} of {ours.n}" if ours.n else NOT_MEASURED})
    notes = [*table_notes(published), *(f"{row.label}: {row.why}." for row in published.rows if row.why)]
    notes += [f"at 100/s: {row.defect}." for row in published.rows[:3] if row.defect]
    return published_table(study, "observations", published, lines, notes)


def loss_table(study: Study, run: BoardRun) -> Table:
    """Return each loss rate and QoS: published, then ours by pattern and direction."""
    published = study.table("loss")
    lines: list[Figures] = []
    missing = []
    known: set[int] = set()
    for row in published.rows:
        ours = selected(run, row.ours)
        known |= set(map(id, ours.records))
        head = {"label": row.label, "published_ms": published_ms(row), "published_n": row.n}
        head["shown_n"] = f"{row.n} of {published.n}"
        patterns = reversed(by_setting(ours.records, _PATTERN).items())
        lines += [{**head, **_loss_line(own, str(pattern))} for (pattern,), own in patterns]
        if not ours.n:
            empty: Figures = {"pattern": None, "pattern_shown": NOT_MEASURED, "connects": [], "answered": "0"}
            lines.append({**head, **echo_line(NO_ECHOES, NONE), **empty})
            missing.append((row.label, why_missing(run, row)))
    for key, own in _unpublished(run, known).items():
        up, down, pattern, size, qos = map(str, key)
        label = f"↑ {int(up) / 1e4:g} %, ↓ {int(down) / 1e4:g} %, {size_text(int(size))}, QoS {qos}"
        lines.append({"label": label, **_loss_line(own, pattern)})
    notes = [*table_notes(published), *_hops(run), *_bursts(run)]
    found = published_table(study, "loss", published, lines, notes)
    more = (*rates_note([Echoes(tuple(lossy(run)))]), *missing_notes(missing))
    return replace(found, notes=(*found.notes, *more))


def _unpublished(run: BoardRun, known: set[int]) -> Mapping[tuple[Scalar, ...], Echoes]:
    rest = [record for record in lossy(run) if id(record) not in known]
    return by_setting(rest, *_LOSSES, _PATTERN, "payload_bytes", "qos")


def _loss_line(found: Echoes, pattern: str) -> Figures:
    told = {"answered": f"{found.answered} of {found.n}", "connects_shown": _connects_text(found)}
    told |= {"pattern": pattern, "pattern_shown": pattern}
    return {**told, "connects": _connects(found), **echo_line(found)}


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


def saturated(records: Iterable[RunRecord]) -> list[Echoes]:
    """Return the limited records in which the wait grows: more was offered than the limit carries."""
    return [own for record in limited(records) if _grows(own := Echoes((record,)))]


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
    grown = saturated(run.of(BENCH))
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
