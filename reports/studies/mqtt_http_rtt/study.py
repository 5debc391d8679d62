# SPDX-License-Identifier: Apache-2.0
"""The study mqtt-http-rtt beside our run of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hil.reports.studies.claims import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Check,
    Finding,
    all_of,
    beyond,
    from_test,
)
from hil.reports.studies.document import number, percent
from hil.reports.studies.estimate import ALPHA, Estimate, above, share_of, share_text
from hil.reports.studies.mqtt_http_rtt import phases as parts
from hil.reports.studies.mqtt_http_rtt import requests as first
from hil.reports.studies.mqtt_http_rtt.requests import Phase, Request, setting
from hil.reports.studies.records import BoardRun, grouped
from hil.reports.studies.sections import Parts

_LONGEST_PAUSE_MS = 32_000  # of the study
_PAUSE_MARGIN = 0.25  # of the median: what counts as no delay
_MOST_OF_IT = 0.5


def _share(phases: Sequence[Phase], hits: Sequence[bool], alpha: float = ALPHA) -> Estimate:
    """Return the share of phases that are hits; where boots differ, phases of one boot count for less."""
    boots = sorted({phase.boot for phase in phases})
    own = [[hit for phase, hit in zip(phases, hits, strict=True) if phase.boot == boot] for boot in boots]
    return share_of([sum(found) for found in own], [len(found) for found in own], alpha)


def _first_slowest(run: BoardRun) -> Finding:
    """Count the phases in which the first request is the slowest, against what chance would give."""
    found = first.shortest(first.phases_of(_usual(run)))
    if not found:
        return Finding(UNDECIDED, "no phase of two requests or more was measured without a disturbance")
    hits = [phase.first_is_slowest for phase in found]
    length = len(found[0].requests)
    chance = 1 / length
    share = _share(found, hits)
    reason = (
        f"slowest in {sum(hits)} of {len(found)} phases of {length} requests, "
        f"{share_text(share)}; by chance in {percent(chance)}"
    )
    return from_test(beyond(share, chance), reason)


def _usual(run: BoardRun) -> list[Request]:
    """Return the undisturbed requests of the study's own setting: both ends reconnect, and the like."""
    return [request for request in first.undisturbed(run) if not setting(request.record)]


def _pause_adds_nothing(run: BoardRun) -> Finding:
    """Bound what the longest pause adds to the median; nothing is less than a quarter of the median."""
    fair = ALPHA / max(1, len(_pauses(run, ALPHA)))
    slower, told, small, longest_ms = [], [], [], 0
    for name, pause_ms, none, after in _pauses(run, fair):
        pause, most = f"a pause of {pause_ms / 1000:g} s", after.high - none.low
        bound = f"{number(max(most, 0.0))} ms at most" if math.isfinite(most) else "what has no upper bound"
        told.append(f"{pause} adds {bound} to a median of {none.short} ms ({name})")
        slower += [f"after {pause} ({name})"] if above(after, none) else []
        small.append(most < _PAUSE_MARGIN * (none.value or 0.0))
        longest_ms = max(longest_ms, pause_ms)
    if not told:
        return Finding(UNDECIDED, "no case was measured with and without a pause, often enough")
    if slower:
        return Finding(CONTRADICTED, f"provably slower {'; '.join(slower)}")
    if not all(small):
        return Finding(UNDECIDED, f"{'; '.join(told)}; no delay would be less than a quarter of the median")
    longer = "" if longest_ms >= _LONGEST_PAUSE_MS else "; longer ones were not measured (--size full)"
    return Finding(SUPPORTED, f"{'; '.join(told)}: less than a quarter of it{longer}")


def _pauses(run: BoardRun, alpha: float) -> list[tuple[str, int, Estimate, Estimate]]:
    """Return the round trip after the shortest and after the longest pause, which is in ms, of each case."""
    groups = [
        (name, max(found), found[min(found)], found[max(found)])
        for name, found in parts.pause_groups(run, alpha).items()
    ]
    return [one for one in groups if one[2].value is not None and one[3].value is not None]


def _cold_path(run: BoardRun) -> Finding:
    """Count the phases in which DNS, TCP and TLS are most of what the first request takes more.

    Kinds of connection and phases are not mixed: what there is to set up differs. All kinds have to hold, so
    each is tested at ALPHA; that one of them does not is tested at their share of it.
    """
    compared: list[tuple[str, list[Phase]]] = []
    told, unproven = [], []
    for name, requests in grouped(_usual(run), first.group).items():
        found = first.phases_of(requests)
        more = first.excess(found)
        if more.value is None or more.low <= 0.0:
            unproven.append(name)
            continue
        compared.append((f"{name}: {more.text} ms more", [one for one in found if one.excess_ms() > 0.0]))
    verdicts = []
    for head, found in compared:
        hits = [_cold_ms(phase) >= _MOST_OF_IT * phase.excess_ms() for phase in found]
        share = replace(_share(found, hits), high=_share(found, hits, ALPHA / len(compared)).high)
        verdicts.append(beyond(share, _MOST_OF_IT))
        told.append(f"{head}, most of it DNS, TCP and TLS in {share_text(share)} of {len(hits)} phases")
    if unproven:
        told.append(f"not proven to take more: {'; '.join(unproven)}")
    if not verdicts:
        return Finding(UNDECIDED, "; ".join(told) or "no first request was measured without a disturbance")
    return from_test(all_of(verdicts), "; ".join(told))


def _cold_ms(phase: Phase) -> float:
    return sum(phase.excess_ms(column) for column in first.COLD_PARTS)


def _profiles_differ(run: BoardRun) -> Finding:
    """Compare the profiles where they did not disturb each other; the pairs share ALPHA."""
    told = _profile_pairs(run, ALPHA)
    if not told:
        return Finding(UNDECIDED, "no two profiles were measured in turns, often enough")
    apart = [name for name, found in _profile_pairs(run, ALPHA / len(told)) if found is not None]
    if apart:
        return Finding(SUPPORTED, f"provably apart from the baseline: {'; '.join(apart)}")
    return Finding(UNDECIDED, "the profiles cannot be told apart where they take turns")


def _profile_pairs(run: BoardRun, alpha: float) -> list[tuple[str, bool | None]]:
    """Return each profile but the baseline, and whether it is provably slower, faster, or neither.

    Where they took turns only that counts: what changes with time is then the same for all.
    """
    pairs = []
    groups = parts.profile_estimates(run, alpha)
    order = "interleaved" if any(name.startswith("interleaved") for name in groups) else "single"
    for name, profiles in groups.items():
        baseline = profiles.get("baseline")
        if not name.startswith(order) or baseline is None:
            continue
        pairs += [
            (f"{profile}, {name}", above(found, baseline))
            for profile, found in profiles.items()
            if profile != "baseline" and found.value is not None and baseline.value is not None
        ]
    return pairs


_CHECKS: Mapping[str, Check] = {
    "first-request-slowest": _first_slowest,
    "pause-adds-nothing": _pause_adds_nothing,
    "cold-path-explains-first": _cold_path,
    "profiles-differ": _profiles_differ,
}
PARTS = Parts(
    tables={
        "phases": parts.phase_table,
        "timeouts": parts.timeout_table,
        "first": first.first_table,
        "excess": first.excess_table,
        "connect": first.connect_table,
        "tls": parts.tls_table,
        "pauses": parts.pause_table,
        "profiles": parts.profile_table,
    },
    checks=_CHECKS,
)
