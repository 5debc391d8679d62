# SPDX-License-Identifier: Apache-2.0
"""The published phases of mqtt-http-rtt beside ours, by their estimator and by ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hil.reports.studies.comparison import published_text, row_notes, table_notes
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.estimate import ALPHA, Estimate, above, mean_whole_ms, share_of, share_text
from hil.reports.studies.layout import Figures, lay_out, published_table
from hil.reports.studies.mqtt_http_rtt.requests import (
    BENCH,
    PROFILES,
    Request,
    failures,
    mode,
    named,
    part,
    pause_ms,
    requests_of,
    rtt,
    rtt_quantile,
    selected,
    setting,
    timeouts,
)
from hil.reports.studies.records import BoardRun, boots, grouped


def phase_table(study: Study, run: BoardRun) -> Table:
    """Return each phase: published, then ours for each setting and order that was measured."""
    published = study.table("phases")
    lines: list[Figures] = []
    notes = table_notes(published)
    for row in published.rows:
        groups = _groups(row, run, lambda request: _length(request, published.n))
        head = {"label": row.label, "shown": published_text(row), "published": row.published}
        for name, requests in groups:
            figures = {
                "p50": rtt(requests),
                "p95": rtt_quantile(requests, 0.95),
                "p99": rtt_quantile(requests, 0.99),
            }
            theirs = {"their_way": _theirs(requests, published.n)}
            lines.append(
                {**head, "ours": name, **theirs, **figures, "n": len(requests), "boots": _boots(requests)}
            )
        if not groups:
            lines.append({**head, "ours": NOT_MEASURED, "n": 0, "boots": 0})
            notes += row_notes(row, run, measured=False)
    return published_table(study, "phases", published, lines, notes, n=published.n)


def _groups(
    row: Row, run: BoardRun, further: Callable[[Request], str] = lambda _: ""
) -> list[tuple[str, list[Request]]]:
    """Return the requests of a row by order and setting; those at the same instant, as published, first."""

    def place(request: Request) -> str:
        return named(mode(request.record), setting(request.record)) + further(request)

    found = grouped(selected(run, row.ours), place) if row.ours else {}
    return sorted(((name, own) for name, own in found.items()), key=lambda pair: _rank(pair[0]))


def _length(request: Request, published: int) -> str:
    """Name the length of a phase that is not as published: it decides how much its first request weighs."""
    return "" if request.planned == published else f", {request.planned}"


def _rank(name: str) -> tuple[int, bool]:
    order = name.partition(";")[0].partition(",")[0]
    return ("together", "single", "interleaved").index(order), "," in name


def _theirs(requests: Sequence[Request], n: int) -> float | None:
    """Return the published way's mean: of the first run's phase, whole ms, over the clocks of both ends.

    None where phases have another length.
    """
    own = [request for request in requests if request.planned == n]
    first = [request for request in own if request.record is own[0].record]
    return mean_whole_ms([request.row["payload_us"] for request in first if request.is_ok])


def _boots(requests: Sequence[Request]) -> int:
    return boots(request.record for request in requests)


def timeout_table(study: Study, run: BoardRun) -> Table:
    """Return how many requests were not answered in time, as published and with the bounds of the share."""
    published = study.table("timeouts")
    lines: list[Figures] = []
    notes = table_notes(published)
    for row in published.rows:
        groups = _groups(row, run)
        head = {"label": row.label, "shown": published_text(row)}
        for name, requests in groups:
            late, of = timeouts(requests), len(requests)
            told = {"counted": f"{late} of {of}", "share": share_text(share_of([late], [of]))}
            lines.append(
                {**head, "ours": name, "timeouts": late, "of": of, **told, "failed": failures(requests)}
            )
        if not groups:
            lines.append({**head, "ours": NOT_MEASURED})
            notes += row_notes(row, run, measured=False)
    return published_table(study, "timeouts", published, lines, notes)


def case_name(request: Request) -> str:
    """Name profile, order and setting of a request."""
    return named(f"{request.profile}, {mode(request.record)}", setting(request.record))


def tls_table(study: Study, run: BoardRun) -> Table | None:
    """Return full and resumed TLS handshakes of the board with the server."""
    shaken = [request for request in requests_of(run.of(BENCH)) if request.row.get("tls_us", 0) > 0]
    groups = grouped(shaken, lambda request: ("full", "resumed")[min(1, request.row.get("resumed", 0))])
    found = {name: part(own, "tls_us") for name, own in sorted(groups.items(), key=str)}
    lines = [{"handshake": name, "p50_ms": one, "n": one.n} for name, one in found.items()]
    return lay_out(study, "tls", lines)


def pause_groups(run: BoardRun, alpha: float = ALPHA) -> dict[str, dict[int, Estimate]]:
    """Return the round trips after a pause, by case and pause in ms, where more than one pause was measured.

    Bounds are each wrong with probability ``alpha`` at most. The first request of a phase comes after
    connecting, not after a pause, so it is left out.
    """
    later = [request for request in requests_of(run.of(BENCH)) if not request.is_first]
    found = {}
    for name, requests in grouped(later, case_name).items():
        pauses = grouped(requests, lambda request: pause_ms(request.record))
        if len(pauses) > 1:
            by_pause = {pause: rtt(own, alpha) for pause, own in pauses.items()}
            found[name] = dict(sorted(by_pause.items()))
    return found


def pause_table(study: Study, run: BoardRun) -> Table | None:
    """Return the round trip by the pause before the request."""
    lines = []
    for name, pauses in pause_groups(run).items():
        shortest = min(pauses)
        for pause, found in pauses.items():
            line = {
                "case": name,
                "pause": f"{pause / 1000:g} s",
                "pause_ms": pause,
                "rtt_p50": found,
                "n": found.n,
            }
            lines.append({**line, "against": NONE if pause == shortest else _told(found, pauses[shortest])})
    return lay_out(study, "pauses", lines)


def _told(found: Estimate, other: Estimate) -> str:
    """Say how one compares with the other."""
    if found.value is None or other.value is None:
        return "too few"
    slower = above(found, other)
    if slower is None:
        return APART
    return f"{'slower' if slower else 'faster'} by {number(abs(found.value - other.value))} ms"


APART = "cannot be told apart"


def profile_estimates(run: BoardRun, alpha: float = ALPHA) -> dict[str, dict[str, Estimate]]:
    """Return each profile's requests but the first ones of phases, by order and setting."""
    later = [
        request
        for request in requests_of(run.of(BENCH))
        if not request.is_first and not pause_ms(request.record)
    ]
    found = {}
    for name, requests in grouped(later, lambda one: named(mode(one.record), setting(one.record))).items():
        profiles = grouped(requests, lambda request: request.profile)
        if len(profiles) > 1:
            known = [profile for profile in PROFILES if profile in profiles]
            found[name] = {profile: rtt(profiles[profile], alpha) for profile in known}
    return found


def profile_table(study: Study, run: BoardRun) -> Table | None:
    """Return the profiles against the baseline, by order."""
    lines = []
    for name, profiles in profile_estimates(run).items():
        baseline = profiles.get("baseline")
        for profile, found in profiles.items():
            against = NONE if found is baseline or baseline is None else _told(found, baseline)
            lines.append(
                {"case": name, "profile": profile, "rtt_p50": found, "n": found.n, "against": against}
            )
    return lay_out(study, "profiles", lines)
