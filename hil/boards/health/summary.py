# SPDX-License-Identifier: Apache-2.0
"""From a line a run to what the lab keeper wants to know of each rack and board. Pure.

What a later run of the same firmware says of a verdict: flakes, and regressions that were none. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import target_of
from hil.boards.health.lines import with_runs
from hil.boards.health.types import (
    DAY_S,
    RIG,
    BoardHealth,
    Part,
    Quarantine,
    RackHealth,
    RunHealth,
    between_s,
    outages_of,
    rig_failed,
    took_part,
    unix_s,
)

_Alike = Callable[[RunHealth, RunHealth, str], bool]


@dataclass(frozen=True)
class Repeats:
    """``checked`` verdicts were given again, ``wrong`` of them had blocked for nothing."""

    checked: int
    wrong: int

    @property
    def ratio(self) -> float | None:
        return self.wrong / self.checked if self.checked else None


@dataclass(frozen=True)
class _Judged:
    run: RunHealth
    blocked: bool


def flakes(runs: Sequence[RunHealth], *, since: Callable[[RunHealth], bool]) -> Repeats:
    """Return how many blocking series were judged again, and how many of them blocked once and then passed.

    ``runs`` are of one rack in the order of their start; those are counted that ``since`` holds of.
    """
    checked = wrong = 0
    for name, judged in _by_series(runs, "blocked", "passed").items():
        for first, second in _pairs(judged, name, _same_firmware):
            if since(first.run):
                checked += 1
                wrong += first.blocked and not second.blocked
    return Repeats(checked, wrong)


def false_regressions(runs: Sequence[RunHealth], *, since: Callable[[RunHealth], bool]) -> Repeats:
    """Return how many comparisons could be checked, and how many of them had blocked for nothing.

    One of an image with itself checks itself; another is checked by the next one of the same two images.
    """
    checked = wrong = 0
    for name, judged in _by_series(runs, "compared_blocked", "compared_passed").items():
        with_itself = [one for one in judged if _is_with_itself(one.run, name)]
        others = [one for one in judged if one not in with_itself]
        for one in with_itself:
            if since(one.run):
                checked += 1
                wrong += one.blocked
        for first, second in _pairs(others, name, _same_pair):
            if since(first.run):
                checked += 1
                wrong += first.blocked and not second.blocked
    return Repeats(checked, wrong)


def _by_series(runs: Sequence[RunHealth], blocked: str, passed: str) -> Mapping[str, list[_Judged]]:
    found: dict[str, list[_Judged]] = {}
    for run in runs:
        for name in getattr(run, blocked):
            found.setdefault(name, []).append(_Judged(run, blocked=True))
        for name in getattr(run, passed):
            found.setdefault(name, []).append(_Judged(run, blocked=False))
    return found


def _pairs(judged: Sequence[_Judged], name: str, alike: _Alike) -> Iterator[tuple[_Judged, _Judged]]:
    """Yield each verdict with the next one that was given under the same conditions."""
    for n, first in enumerate(judged):
        second = next((later for later in judged[n + 1 :] if alike(first.run, later.run, name)), None)
        if second:
            yield first, second


def _same_firmware(first: RunHealth, second: RunHealth, name: str) -> bool:
    """Say whether both runs measured a board's series with the same images, over the same air."""
    board = name.split("/")[1]
    targets = {part.target for run in (first, second) for part in run.boards if part.board == board}
    return (
        len(targets) == 1
        and first.profile == second.profile
        and _same_images(first.firmware, second.firmware, min(targets))
    )


def _same_pair(first: RunHealth, second: RunHealth, name: str) -> bool:
    target = name.split("/")[1]  # of a comparison, which is of all boards of a target
    return (
        first.profile == second.profile
        and _same_images(first.firmware, second.firmware, target)
        and _same_images(first.base, second.base, target)
    )


def _is_with_itself(run: RunHealth, name: str) -> bool:
    return _same_images(run.firmware, run.base, name.split("/")[1])


def _same_images(first: Mapping[str, str], second: Mapping[str, str], target: str) -> bool:
    """Say whether a target has images in both, and those of the same name are the same bytes."""
    shared = [name for name in first.keys() & second.keys() if target_of(name) == target]
    return bool(shared) and all(first[name] == second[name] for name in shared)


DEFAULT_DAYS = 30


def summarise(
    lines: Sequence[RunHealth],
    *,
    now_utc: str,
    days: int = DEFAULT_DAYS,
    quarantine: Mapping[str, Quarantine] | None = None,
) -> tuple[RackHealth, ...]:
    """Return each rack with a run in the ``days`` up to ``now_utc``, sorted by name.

    ``quarantine`` says by ``rack/board`` which boards are in quarantine now; without it, the board's latest
    line does. An outage that began before the window counts with its whole length.

    Raises:
        ConfigError: ``now_utc`` is no moment.
    """
    now_s = unix_s(now_utc)
    if now_s is None:
        raise ConfigError(f"{now_utc!r} is no moment, such as 2026-11-20T22:12:57Z.")
    known = [run for run in with_runs((), lines) if (_start_s(run) or now_s) <= now_s]
    racks = [[run for run in known if run.rack == rack] for rack in sorted({run.rack for run in known})]
    found = (_rack(runs, now_s, days, quarantine) for runs in racks)
    return tuple(rack for rack in found if rack.runs)


def _start_s(run: RunHealth) -> float | None:
    return unix_s(run.started_utc)


def _is_since(run: RunHealth, start_s: float) -> bool:
    started_s = _start_s(run)
    return started_s is not None and started_s >= start_s


def _rack(
    runs: Sequence[RunHealth], now_s: float, days: int, quarantine: Mapping[str, Quarantine] | None
) -> RackHealth:
    start_s = now_s - days * DAY_S
    shown = [run for run in runs if _is_since(run, start_s)]
    flaked = flakes(runs, since=lambda run: _is_since(run, start_s))
    refuted = false_regressions(runs, since=lambda run: _is_since(run, start_s))
    faults: Counter[str] = Counter()
    for run in shown:
        faults.update(run.faults)
        for part in run.boards:
            faults.update(part.faults)
    names = sorted({part.board for run in shown for part in run.boards})
    boards = tuple(_board(board, runs, start_s, now_s, quarantine) for board in names)
    failed = sum(bool(run.faults.get(RIG)) or any(map(rig_failed, run.boards)) for run in shown)
    recoveries = sum(board.recoveries for board in boards)
    recovered_s = math.fsum(board.recoveries * (board.mean_time_to_recovery_s or 0.0) for board in boards)
    return RackHealth(
        rack=runs[0].rack,
        days=days,
        runs=len(shown),
        boards=boards,
        infrastructure_faults=dict(sorted(faults.items())),
        lease_waits_s=tuple(run.lease_wait_s for run in shown if run.lease_wait_s is not None),
        flakes=flaked.wrong,
        judged_again=flaked.checked,
        flake_ratio=flaked.ratio,
        false_regressions=refuted.wrong,
        comparisons_checked=refuted.checked,
        false_regression_ratio=refuted.ratio,
        faulted_runs=failed,
        failure_ratio=failed / len(shown) if shown else None,
        recoveries=recoveries,
        mean_time_to_recovery_s=recovered_s / recoveries if recoveries else None,
    )


def _board(
    name: str,
    runs: Sequence[RunHealth],
    start_s: float,
    now_s: float,
    quarantine: Mapping[str, Quarantine] | None,
) -> BoardHealth:
    parts: list[Part] = [(run, part) for run in runs for part in run.boards if part.board == name]
    shown = [(run, part) for run, part in parts if _is_since(run, start_s)]
    told = [part for _, part in shown if took_part(part)]
    failed = [part for part in told if rig_failed(part)]
    outages = outages_of(parts)
    down = next((outage for outage in outages if not outage.ended_utc), None)
    recoveries_s = [
        lasted_s
        for outage in outages
        if (unix_s(outage.ended_utc) or 0.0) >= start_s
        and (lasted_s := between_s(outage.since_utc, outage.ended_utc)) is not None
    ]
    held_s = math.fsum(run.held_s or 0.0 for run, part in shown if part.state != "quarantined")
    seen_s = now_s - max(start_s, _start_s(parts[0][0]) or start_s)
    last, latest = shown[-1]
    place = f"{last.rack}/{name}"
    return BoardHealth(
        rack=last.rack,
        board=name,
        kind=latest.kind,
        target=latest.target,
        runs=len(told),
        faulted_runs=len(failed),
        failure_ratio=len(failed) / len(told) if told else None,
        recoveries=len(recoveries_s),
        mean_time_to_recovery_s=sum(recoveries_s) / len(recoveries_s) if recoveries_s else None,
        held_s=held_s,
        measured_s=math.fsum(part.measured_s for _, part in shown),
        utilisation_ratio=min(1.0, held_s / seen_s) if seen_s > 0 else None,
        faults_in_a_row=down.runs if down else 0,
        last_run_id=last.run_id,
        last_seen_utc=last.started_utc,
        last_fault=failed[-1].first_fault if failed else "",
        quarantine=latest.quarantine if quarantine is None else quarantine.get(place),
        down_since_utc=down.since_utc if down else "",
        recovered=dict(sum((Counter(part.recovered) for _, part in shown), Counter())),
        recovery_s=math.fsum(part.recovery_s or 0.0 for _, part in shown),
    )
