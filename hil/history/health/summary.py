# SPDX-License-Identifier: Apache-2.0
"""From what each run says to each rack's health: failures by owner, and time to recovery. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from hil.base.errors import ConfigError
from hil.history.health.types import (
    DAY_S,
    BoardHealth,
    Part,
    RackHealth,
    between_s,
    in_order,
    outages_of,
    rig_failed,
    took_part,
    unix_s,
)
from hil.history.summary import Summary
from hil.model import IMPORTED, Quarantine

DEFAULT_DAYS = 30


def summarise(
    runs: Sequence[Summary],
    *,
    now_utc: str,
    days: int = DEFAULT_DAYS,
    quarantine: Mapping[str, Quarantine] | None = None,
) -> tuple[RackHealth, ...]:
    """Return each rack with a run in the ``days`` up to ``now_utc``, sorted by name.

    ``quarantine`` says by ``rack/board`` which boards are in quarantine now; without it, the board's latest
    run does. An outage that began before the window counts with its whole length.

    Raises:
        ConfigError: ``now_utc`` is no moment.
    """
    now_s = unix_s(now_utc)
    if now_s is None:
        raise ConfigError(f"{now_utc!r} is not a time such as 2026-11-20T22:12:57Z.")
    known = [run for run in in_order(runs) if (unix_s(run.started_utc) or now_s) <= now_s]
    racks = [
        [run for run in known if run.rack == rack]
        for rack in sorted({run.rack for run in known} - {IMPORTED})
    ]
    found = (_rack(runs, now_s, days, quarantine) for runs in racks)
    return tuple(rack for rack in found if rack.runs)


def _is_since(run: Summary, start_s: float) -> bool:
    started_s = unix_s(run.started_utc)
    return started_s is not None and started_s >= start_s


def _rack(
    runs: Sequence[Summary], now_s: float, days: int, quarantine: Mapping[str, Quarantine] | None
) -> RackHealth:
    start_s = now_s - days * DAY_S
    shown = [run for run in runs if _is_since(run, start_s)]
    faults: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for run in shown:
        own = sum((Counter(part.faults) for part in run.health.boards), Counter(run.health.faults))
        faults += own
        failed.update(owner for owner, count in own.items() if count)
    names = sorted({part.board for run in shown for part in run.health.boards})
    boards = tuple(_board(board, runs, start_s, quarantine) for board in names)
    recoveries = sum(board.recoveries for board in boards)
    recovered_s = math.fsum(board.recoveries * (board.mean_time_to_recovery_s or 0.0) for board in boards)
    return RackHealth(
        rack=runs[0].rack,
        days=days,
        runs=len(shown),
        boards=boards,
        infrastructure_faults=dict(sorted(faults.items())),
        failed_runs=dict(sorted(failed.items())),
        recoveries=recoveries,
        mean_time_to_recovery_s=recovered_s / recoveries if recoveries else None,
    )


def _board(
    name: str, runs: Sequence[Summary], start_s: float, quarantine: Mapping[str, Quarantine] | None
) -> BoardHealth:
    parts: list[Part] = [(run, part) for run in runs for part in run.health.boards if part.board == name]
    shown = [(run, part) for run, part in parts if _is_since(run, start_s)]
    measured = [part for _, part in shown if took_part(part)]
    failed = [part for part in measured if rig_failed(part)]
    outages = outages_of(parts)
    down = next((outage for outage in outages if not outage.ended_utc), None)
    recoveries_s = [
        lasted_s
        for outage in outages
        if (unix_s(outage.ended_utc) or 0.0) >= start_s
        and (lasted_s := between_s(outage.since_utc, outage.ended_utc)) is not None
    ]
    last, latest = shown[-1]
    return BoardHealth(
        rack=last.rack,
        board=name,
        kind=latest.kind,
        target=latest.target,
        runs=len(measured),
        faulted_runs=len(failed),
        failure_ratio=len(failed) / len(measured) if measured else None,
        recoveries=len(recoveries_s),
        mean_time_to_recovery_s=sum(recoveries_s) / len(recoveries_s) if recoveries_s else None,
        faults_in_a_row=down.runs if down else 0,
        last_seen_utc=last.started_utc,
        last_fault=failed[-1].first_fault if failed else "",
        quarantine=latest.quarantine if quarantine is None else quarantine.get(f"{last.rack}/{name}"),
        down_since_utc=down.since_utc if down else "",
    )
