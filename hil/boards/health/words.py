# SPDX-License-Identifier: Apache-2.0
"""A rack's health in words, the same on the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.boards.health.types import BoardHealth, RackHealth
from hil.store.files import short_path

DESERVES = 3  # rig faults in a row after which a board should be kept out
NOTHING = "–"
HEAD = ("board", "kind", "target", "state", "runs", "failed", "MTTR", "held", "measured", "used", "last seen")
_STEPS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_OWNERS = ("rig", "configuration", "firmware")

Tone = Literal["good", "bad", "unsure", "soft"]


@dataclass(frozen=True)
class State:
    """How a board is: a sign that needs no colour, words, and a tone for those who see colours."""

    sign: str
    text: str
    tone: Tone

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def state_of(board: BoardHealth) -> State:
    """Return whether a board is up, down since when, kept out, or not known."""
    if board.quarantine:
        return State("◌", f"quarantined since {day(board.quarantine.since_utc)}", "unsure")
    if board.down_since_utc:
        return State("✗", f"down since {moment(board.down_since_utc)}", "bad")
    if not board.runs:
        return State(NOTHING, "no run", "soft")
    return State("✓", "up", "good")


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
        duration(board.held_s),
        duration(board.measured_s),
        percent(board.utilisation_ratio),
        moment(board.last_seen_utc),
    )


def rack_lines(rack: RackHealth) -> tuple[str, ...]:
    """Return what is to be said of the rack as a whole."""
    waits = rack.lease_waits_s
    waited = (
        f"p50 {duration(nearest_rank(waits, 0.5))}, p95 {duration(nearest_rank(waits, 0.95))}"
        if waits
        else "unknown"
    )
    return (
        f"faults: {faults_by_owner(rack.infrastructure_faults)} (only the rig's are the rack's own)",
        *_brought_back(rack),
        f"waits for boards: {waited}",
        f"flakes: {_share(rack.flakes, rack.judged_again, 'verdicts given again with the same firmware')}",
        "false regressions: "
        + _share(rack.false_regressions, rack.comparisons_checked, "comparisons that could be checked"),
    )


def _brought_back(rack: RackHealth) -> tuple[str, ...]:
    """Return what runs did about boards that did not answer, () where all answered."""
    rungs = sum((Counter(board.recovered) for board in rack.boards), Counter[str]())
    if not rungs:
        return ()
    mean_s = math.fsum(board.recovery_s for board in rack.boards) / rungs.total()
    words = ", ".join(f"{count} by {rung}" for rung, count in rungs.most_common())
    return (f"brought back within a run: {words}; on average after {duration(mean_s)}",)


def faults_by_owner(faults: Mapping[str, int]) -> str:
    """Return "2 rig, 1 firmware", "none" where there is none."""
    owners = [*_OWNERS, *sorted(set(faults) - set(_OWNERS))]
    return ", ".join(f"{faults[owner]} {owner}" for owner in owners if faults.get(owner)) or "none"


def advice(rack: RackHealth, rack_file: Path | None = None) -> list[str]:
    """Return which boards deserve quarantine, each with the command; FILE in it where none is known."""
    path = shlex.quote(short_path(rack_file)) if rack_file else "FILE"
    return [
        f"Board {board.board}: the rig failed on it in {board.faults_in_a_row} runs in a row. Keep it out: "
        f"hil board quarantine {board.board} --why TEXT --rack {path}"
        for board in rack.boards
        if board.faults_in_a_row >= DESERVES and not board.quarantine
    ]


def kinds(rack: RackHealth) -> str:
    """Return "virtual", or "physical, emulated": what the rack's boards are."""
    return ", ".join(sorted({board.kind for board in rack.boards}))


def runs_of(rack: RackHealth) -> str:
    """Return "1 run" or "12 runs"."""
    return f"{rack.runs} run{'' if rack.runs == 1 else 's'}"


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of ``values`` do not exceed; there must be one."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


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


def _share(part: int, whole: int, of_what: str) -> str:
    return f"{part} of {whole} {of_what} ({percent(part / whole)})" if whole else f"no {of_what}"
