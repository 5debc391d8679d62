"""From a line a run to what the lab keeper wants to know of each rack and board. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hil.base.errors import ConfigError
from hil.boards.health.again import false_regressions, flakes
from hil.boards.health.lines import with_runs
from hil.boards.health.moments import DAY_S, between_s, unix_s
from hil.boards.health.outages import Part, outages_of, rig_failed, took_part
from hil.boards.health.types import BoardHealth, Quarantine, RackHealth, RunHealth

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
    boards = sorted({part.board for run in shown for part in run.boards})
    return RackHealth(
        rack=runs[0].rack,
        days=days,
        runs=len(shown),
        boards=tuple(_board(board, runs, start_s, now_s, quarantine) for board in boards),
        infrastructure_faults=dict(sorted(faults.items())),
        lease_waits_s=tuple(run.lease_wait_s for run in shown if run.lease_wait_s is not None),
        flakes=flaked.wrong,
        judged_again=flaked.checked,
        flake_ratio=flaked.ratio,
        false_regressions=refuted.wrong,
        comparisons_checked=refuted.checked,
        false_regression_ratio=refuted.ratio,
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
    held_s = sum(run.held_s or 0.0 for run, part in shown if part.state != "quarantined")
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
        measured_s=sum(part.measured_s for _, part in shown),
        utilisation_ratio=min(1.0, held_s / seen_s) if seen_s > 0 else None,
        faults_in_a_row=down.runs if down else 0,
        last_run_id=last.run_id,
        last_seen_utc=last.started_utc,
        last_fault=failed[-1].first_fault if failed else "",
        quarantine=latest.quarantine if quarantine is None else quarantine.get(place),
        down_since_utc=down.since_utc if down else "",
    )
