# SPDX-License-Identifier: Apache-2.0
"""What one run says of its rack: from run.json, the journal, and verdicts.json where it was judged.

How long a case measured, by its own samples: without set-up, boots and turns of other boards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.base.units import QuantityError, convert, find_unit, unit_of
from hil.boards.health.types import BoardRun, BoardState, Quarantine, RunHealth, between_s
from hil.model import (
    KINDS,
    ComparedSeries,
    Comparison,
    Entry,
    Fault,
    Recovery,
    RunRecord,
    SeriesVerdict,
    Verdict,
)
from hil.store import StoredRun, time_in
from hil.thresholds import own_limits_of

_DONE, _INTERVAL = "done_us", "interval_us"


class MeasuredTime:
    """Looks into a run's own thresholds, bench by bench, where only they tell which columns are moments."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._moments: dict[str, frozenset[str]] = {}

    def of(self, record: RunRecord) -> float:
        """Return the latest moment of a record in seconds, or the sum of its intervals; 0 where neither is.

        Moments are ``done_us``; where there is none, the columns that a metric subtracts from one another.
        """
        if _DONE not in record.columns and _INTERVAL in record.columns:
            return sum(record.columns[_INTERVAL]) / 1e6
        names = {_DONE} if _DONE in record.columns else self._subtracted(record.bench) & {*record.columns}
        return max((_latest_s(name, record.columns[name]) for name in names), default=0.0)

    def _subtracted(self, bench: str) -> frozenset[str]:
        if bench not in self._moments:
            found: set[str] = set()
            with suppress(ConfigError, KeyError):  # of another version, or not kept: its time is unknown
                metrics = own_limits_of(self._run, bench).metrics.values()
                found = {term.column for metric in metrics if len(metric.terms) > 1 for term in metric.terms}
            self._moments[bench] = frozenset(found)
        return self._moments[bench]


def _latest_s(name: str, column: tuple[int, ...]) -> float:
    """Return the last moment of a column; 0 where it holds none."""
    try:
        return convert(max(column, default=0), unit_of(name), find_unit("s"))
    except QuantityError:
        return 0.0


_PASSED = ("pass", "improved")


def health_of(run: StoredRun) -> RunHealth:
    """Return what a run says of its rack.

    A run that was killed, or never judged, counts by what is there: its exit code is that of its faults, and
    130 (interrupted) where it has none.
    """
    info, entries, verdict = run.info, run.journal.entries, run.verdict
    faults = [entry for entry in entries if isinstance(entry, Fault)]
    general = [fault for fault in faults if not fault.board]
    begun, acquired = time_in(run.run_id), str(info.get("lease_acquired_utc", ""))
    comparisons = [entry for entry in entries if isinstance(entry, Comparison)]
    series = [item for item in verdict.series if item.blocking] if verdict else []
    # a comparison of which nothing was booted says nothing of the rack
    compared = (
        [item for item in verdict.compared if item.blocking and item.candidate_boots] if verdict else []
    )
    return RunHealth(
        run_id=run.run_id,
        started_utc=str(info.get("started_utc") or begun),
        rack=str(info.get("rack") or _rack_of(entries)),
        trigger=str(info.get("trigger", "local")),
        exit_code=_exit_code(verdict, faults),
        lease_wait_s=between_s(begun, acquired),
        held_s=between_s(acquired, str(info.get("lease_released_utc", ""))),
        boards=tuple(_boards(run)),
        firmware=_firmware(info, entries),
        base={item.image: item.other_sha256 for item in comparisons},
        blocked=_ids(series, ("regressed",)),
        passed=_ids(series, _PASSED),
        compared_blocked=_ids(compared, ("regressed",)),
        compared_passed=_ids(compared, _PASSED),
        profile=_profile(info),
        faults=dict(Counter(fault.owner for fault in general)),
        first_fault=_first(general),
    )


def _exit_code(verdict: Verdict | None, faults: Sequence[Fault]) -> int:
    if verdict:
        return verdict.exit_code
    return int(combine_exit_codes(fault.exit_code for fault in faults) if faults else ExitCode.INTERRUPTED)


def _ids(items: Iterable[SeriesVerdict | ComparedSeries], outcomes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(item.series_id for item in items if item.outcome in outcomes))


def _boards(run: StoredRun) -> Iterable[BoardRun]:
    """Yield the boards that run.json names, and those that only the journal does, sorted."""
    records: dict[str, list[RunRecord]] = {}
    faults: dict[str, list[Fault]] = {}
    for entry in run.journal.entries:
        if isinstance(entry, RunRecord):
            records.setdefault(entry.board, []).append(entry)
        elif isinstance(entry, Fault) and entry.board:
            faults.setdefault(entry.board, []).append(entry)
    recoveries: dict[str, list[Recovery]] = {}
    for entry in run.journal.entries:
        if isinstance(entry, Recovery):
            recoveries.setdefault(entry.board, []).append(entry)
    natures = {board: (own[0].kind, own[0].target) for board, own in records.items()}
    for board in run.info.get("boards", []):
        natures[str(board.get("id"))] = (board.get("kind", ""), str(board.get("target", "")))
    quarantines = {found.board: found for found in map(_quarantine, run.info.get("quarantined", []))}
    usual = next((kind for kind, _ in natures.values() if kind in KINDS), KINDS[0])  # a rack's are alike
    time = MeasuredTime(run)
    for board in sorted({*natures, *faults}):
        kind, target = natures.get(board, ("", ""))
        own, measured = faults.get(board, []), records.get(board, [])
        yield BoardRun(
            board=board,
            kind=next((known for known in KINDS if known == kind), usual),
            target=target,
            state=_state(own, measured, quarantined=board in quarantines),
            faults=dict(Counter(fault.owner for fault in own)),
            first_fault=_first(own),
            measured_s=round(sum(map(time.of, measured)), 3),
            quarantine=quarantines.get(board),
            **_recovered(recoveries.get(board, [])),
        )


def _recovered(recoveries: Sequence[Recovery]) -> dict[str, Any]:
    """Return what of a board's fields its recoveries tell, {} where it had none."""
    back = [one for one in recoveries if one.by]
    found: dict[str, Any] = {"is_lost": True} if len(back) < len(recoveries) else {}
    if back:
        found["recovered"] = dict(Counter(one.by for one in back))
        found["recovery_s"] = round(sum(one.took_s for one in back), 1)
    return found


def _state(faults: Sequence[Fault], records: Sequence[RunRecord], *, quarantined: bool) -> BoardState:
    if quarantined:
        return "quarantined"
    if faults:
        return "faulted"
    return "measured" if records else "not-run"


def _quarantine(stored: Mapping[str, Any]) -> Quarantine:
    return Quarantine(*(str(stored.get(key, "")) for key in ("board", "since_utc", "who", "why")))


def _first(faults: Sequence[Fault]) -> str:
    """Return the first fault's sentence, the rig's before others'."""
    ranked = sorted(faults, key=lambda fault: fault.owner != "rig")
    return ranked[0].sentence if ranked else ""


def _firmware(info: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, str]:
    """Return the images' digests by name; of a run without any in run.json, those of its records."""
    named = {name: str(image.get("sha256", "")) for name, image in info.get("firmware", {}).items()}
    if not named:
        candidates = [e for e in entries if isinstance(e, RunRecord) and e.role == "candidate"]
        named = {record.target: record.firmware_sha256 for record in candidates}
    return {name: sha256 for name, sha256 in named.items() if sha256}


def _profile(info: Mapping[str, Any]) -> str:
    """Return "lab", or "lab, noise typical" where noise was simulated."""
    noise = info.get("noise") or {}
    words = [str(info.get("profile") or ""), f"noise {noise.get('profile')}" if noise else ""]
    return ", ".join(filter(None, words))


def _rack_of(entries: Iterable[Entry]) -> str:
    return next((entry.rack for entry in entries if isinstance(entry, RunRecord | Comparison)), "")
