# SPDX-License-Identifier: Apache-2.0
"""A rack's health in words, the same on the terminal and in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.history.health.types import BoardHealth, RackHealth
from hil.store.files import typed_path

DESERVES = 3  # rig faults in a row after which a board should be kept out
NOTHING = "–"
HEAD = ("board", "kind", "target", "state", "runs", "failed", "MTTR", "last seen")
_STEPS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_OWNERS = ("rig", "configuration", "firmware")

Tone = Literal["good", "bad", "unsure", "soft"]


@dataclass(frozen=True)
class HealthState:
    """How a board is: a sign that needs no colour, words, and a tone for those who see colours."""

    sign: str
    text: str
    tone: Tone

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def state_of(board: BoardHealth) -> HealthState:
    """Return whether a board is up, down since when, kept out, or not known."""
    if board.quarantine:
        return HealthState("◌", f"quarantined since {day(board.quarantine.since_utc)}", "unsure")
    if board.down_since_utc:
        return HealthState("✗", f"down since {moment(board.down_since_utc)}", "bad")
    if not board.runs:
        return HealthState(NOTHING, "no run", "soft")
    return HealthState("✓", "up", "good")


def cells(board: BoardHealth) -> tuple[str, ...]:
    """Return a board's figures under HEAD."""
    return (
        board.board,
        board.kind,
        board.target or NOTHING,
        str(state_of(board)),
        str(board.runs),
        percent(board.failure_ratio),
        duration(board.mean_time_to_recovery_s),
        moment(board.last_seen_utc),
    )


def rack_lines(rack: RackHealth) -> tuple[str, ...]:
    """Return the failure rate by owner, and the time to recovery."""
    owners = [*_OWNERS, *sorted(set(rack.failed_runs) - set(_OWNERS))]
    counts = [(owner, rack.failed_runs.get(owner, 0)) for owner in owners]
    rates = [f"{owner} {percent(count / rack.runs)}" for owner, count in counts if count]
    return (
        f"failed runs: {', '.join(rates) or 'none'} (only the rig's failures are the rack's own)",
        f"time to recovery: {duration(rack.mean_time_to_recovery_s)}, the mean of {rack.recoveries}",
    )


def advice(rack: RackHealth, rack_file: Path | None = None) -> list[str]:
    """Return which boards deserve quarantine, each with the command; FILE in it where none is known."""
    typed = typed_path(rack_file) if rack_file else "FILE"
    return [
        f"Board {board.board}: the rig failed on it in {board.faults_in_a_row} runs in a row. Keep it out: "
        f"hil board quarantine {board.board} --why TEXT --rack {typed}"
        for board in rack.boards
        if board.faults_in_a_row >= DESERVES and not board.quarantine
    ]


def kinds(rack: RackHealth) -> str:
    """Return "virtual", or "physical, emulated": what the rack's boards are."""
    return ", ".join(sorted({board.kind for board in rack.boards}))


def runs_of(rack: RackHealth) -> str:
    """Return "1 run" or "12 runs"."""
    return f"{rack.runs} run{'' if rack.runs == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """Return "45 s", "12 min", "3.4 h" or "2.1 d"."""
    if seconds is None:
        return NOTHING
    for size_s, unit in _STEPS:
        if seconds >= size_s:
            value = seconds / size_s
            return f"{value:.0f} {unit}" if value >= 10 or unit == "min" else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s"


def percent(ratio: float | None) -> str:
    """Return "12 %"; a share that is there but rounds to nothing is "< 1 %"."""
    if ratio is None:
        return NOTHING
    return "< 1 %" if 0 < ratio < 0.005 else f"{100 * ratio:.0f} %"


def moment(text: str) -> str:
    """Return "2026-11-20 22:12" of a moment in UTC."""
    return text[:16].replace("T", " ") or NOTHING


def day(text: str) -> str:
    """Return "2026-11-20" of a moment in UTC."""
    return text[:10] or NOTHING
