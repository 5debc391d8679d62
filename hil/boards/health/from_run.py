"""What one run says of its rack: from run.json, the journal, and verdicts.json where it was judged.

How long a case measured, by its own samples: without set-up, boots and turns of other boards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.base.units import QuantityError, convert, find_unit, unit_of
from hil.boards.health.types import BoardRun, BoardState, Quarantine, RunHealth, between_s
from hil.model import KINDS, Comparison, Entry, Fault, RunRecord
from hil.store import RunDirectory, time_in
from hil.thresholds import load
from hil.thresholds.loader import FOLDER

_DONE, _INTERVAL = "done_us", "interval_us"


class MeasuredTime:
    """Reads a run's own thresholds, bench by bench, where only they tell which columns are moments."""

    def __init__(self, run_path: Path) -> None:
        self._folder = run_path / FOLDER
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
            with suppress(
                ConfigError
            ):  # limits that have expired, or of another version: its time is unknown
                metrics = load(bench, self._folder).metrics.values()
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
_Judged = Sequence[Mapping[str, Any]]


def health_of(run_path: Path) -> RunHealth:
    """Return what the run in ``run_path`` says of its rack.

    A run that was killed, or never judged, counts by what is there: its exit code is that of its faults, and
    130 (interrupted) where it has none.

    Raises:
        ConfigError: no run directory, or one of its files is damaged.
        RigError: the disk does not give it.
    """
    directory = RunDirectory.open(run_path)
    info, entries = directory.read_info(), directory.read().entries
    verdict = _read_verdict(directory.verdicts_path)
    faults = [entry for entry in entries if isinstance(entry, Fault)]
    general = [fault for fault in faults if not fault.board]
    begun, acquired = time_in(directory.run_id), str(info.get("lease_acquired_utc", ""))
    comparisons = [entry for entry in entries if isinstance(entry, Comparison)]
    series = _blocking(verdict, "series")
    # a comparison of which nothing was booted says nothing of the rack
    compared = [item for item in _blocking(verdict, "compared") if item.get("candidate_boots")]
    return RunHealth(
        run_id=directory.run_id,
        started_utc=str(info.get("started_utc") or begun),
        rack=str(info.get("rack") or _rack_of(entries)),
        trigger=str(info.get("trigger", "local")),
        exit_code=_exit_code(verdict, faults),
        lease_wait_s=between_s(begun, acquired),
        held_s=between_s(acquired, str(info.get("lease_released_utc", ""))),
        boards=tuple(_boards(directory, info, entries)),
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


def _read_verdict(path: Path) -> Mapping[str, Any]:
    """Return verdicts.json, {} where the run was not judged. Raises ConfigError where it is damaged."""
    try:
        verdict = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(verdict, dict) and verdict.get("exit_code") in set(ExitCode):
            return verdict
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        pass
    raise ConfigError(
        f"{path}: no verdict can be read from it.", next_step=f"judge the run again: hil gate {path.parent}"
    )


def _exit_code(verdict: Mapping[str, Any], faults: Sequence[Fault]) -> int:
    if verdict:
        return int(verdict["exit_code"])
    return int(combine_exit_codes(fault.exit_code for fault in faults) if faults else ExitCode.INTERRUPTED)


def _blocking(verdict: Mapping[str, Any], key: str) -> _Judged:
    return [item for item in verdict.get(key, []) if item.get("blocking")]


def _ids(items: _Judged, outcomes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(str(item["series_id"]) for item in items if item.get("outcome") in outcomes))


def _boards(directory: RunDirectory, info: Mapping[str, Any], entries: Iterable[Entry]) -> Iterable[BoardRun]:
    """Yield the boards that run.json names, and those that only the journal does, sorted."""
    records: dict[str, list[RunRecord]] = {}
    faults: dict[str, list[Fault]] = {}
    for entry in entries:
        if isinstance(entry, RunRecord):
            records.setdefault(entry.board, []).append(entry)
        elif isinstance(entry, Fault) and entry.board:
            faults.setdefault(entry.board, []).append(entry)
    natures = {board: (own[0].kind, own[0].target) for board, own in records.items()}
    for board in info.get("boards", []):
        natures[str(board.get("id"))] = (board.get("kind", ""), str(board.get("target", "")))
    quarantines = {found.board: found for found in map(_quarantine, info.get("quarantined", []))}
    usual = next((kind for kind, _ in natures.values() if kind in KINDS), KINDS[0])  # a rack's are alike
    time = MeasuredTime(directory.path)
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
        )


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
