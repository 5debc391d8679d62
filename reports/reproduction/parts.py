"""TLS handshakes, pauses and profiles: what they do to a request."""

from __future__ import annotations

from reports.reproduction.document import NONE, Table, number
from reports.reproduction.estimate import ALPHA, Estimate, above
from reports.reproduction.records import BoardRun
from reports.reproduction.requests import (
    BENCH,
    PROFILES,
    Request,
    by,
    mode,
    named,
    part,
    pause_ms,
    requests_of,
    rtt,
    setting,
)


def case_name(request: Request) -> str:
    """Name profile, order and setting of a request."""
    return named(f"{request.profile}, {mode(request.record)}", setting(request.record))


def tls_table(run: BoardRun) -> Table | None:
    """Return full and resumed TLS handshakes of the board with the server."""
    shaken = [request for request in requests_of(run.of(BENCH)) if request.row.get("tls_us", 0) > 0]
    groups = by(shaken, lambda request: ("full", "resumed")[min(1, request.row.get("resumed", 0))])
    found = {str(name): part(own, "tls_us") for name, own in groups.items()}
    if not found:
        return None
    rows = [(name, one.text, str(one.n)) for name, one in sorted(found.items())]
    data = tuple({"handshake": name, "p50_ms": one.data} for name, one in found.items())
    return Table("tls", "TLS handshakes with the server, ms", ("", "p50", "n"), tuple(rows), (), data)


def pause_groups(run: BoardRun, alpha: float = ALPHA) -> dict[str, dict[int, Estimate]]:
    """Return the round trips after a pause, by case and pause in ms, where more than one pause was measured.

    Bounds are each wrong with probability ``alpha`` at most. The first request of a phase comes after
    connecting, not after a pause, so it is left out.
    """
    later = [request for request in requests_of(run.of(BENCH)) if not request.is_first]
    found = {}
    for name, requests in by(later, case_name).items():
        pauses = by(requests, lambda request: pause_ms(request.record))
        if len(pauses) > 1:
            by_pause = {int(str(pause)): rtt(own, alpha) for pause, own in pauses.items()}
            found[str(name)] = dict(sorted(by_pause.items()))
    return found


def pause_table(run: BoardRun) -> Table | None:
    """Return the round trip by the pause before the request."""
    rows, data = [], []
    for name, pauses in pause_groups(run).items():
        none = next(iter(pauses.values()))
        shown = name
        for pause, found in pauses.items():
            said = NONE if found is none else _told(found, none)
            rows.append((shown, f"{pause / 1000:g} s", found.text, str(found.n), said))
            data.append({"case": name, "pause_ms": pause, "rtt_p50": found.data})
            shown = ""
    if not rows:
        return None
    columns = ("", "pause", "rtt p50", "n", "against the shortest pause")
    title = "The request after a pause while connected, ms"
    return Table("pauses", title, columns, tuple(rows), (), tuple(data))


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
    for name, requests in by(later, lambda one: named(mode(one.record), setting(one.record))).items():
        profiles = by(requests, lambda request: request.profile)
        if len(profiles) > 1:
            known = [profile for profile in PROFILES if profile in profiles]
            found[str(name)] = {profile: rtt(profiles[profile], alpha) for profile in known}
    return found


def profile_table(run: BoardRun) -> Table | None:
    """Return the profiles against the baseline, by order."""
    rows, data = [], []
    for name, profiles in profile_estimates(run).items():
        baseline = profiles.get("baseline")
        shown = name
        for profile, found in profiles.items():
            against = NONE if found is baseline or baseline is None else _told(found, baseline)
            rows.append((shown, profile, found.text, str(found.n), against))
            data.append({"case": name, "profile": profile, "rtt_p50": found.data})
            shown = ""
    if not rows:
        return None
    columns = ("", "profile", "rtt p50", "n", "against baseline")
    return Table(
        "profiles", "Profiles, without each phase's first request, ms", columns, tuple(rows), (), tuple(data)
    )
