"""A rack's health as Prometheus metrics: one group a rack, of the job ``hil_rack``.

All but the quarantine are figures over a window; its length stands in the label ``days``, for the same name
with another window is another figure. docs/operate/metrics.md says what each means.

The groups that racks push of themselves at a run's end, from the history of their health.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from hil.base.errors import HilError
from hil.boards.health import HEALTH_FILE, read_lines, summarise
from hil.boards.health.types import BoardHealth, RackHealth, unix_s
from hil.boards.health.words import nearest_rank
from hil.reports.metrics import Families, Group
from hil.store.run_info import utc_now

JOB = "hil_rack"
OWNERS = ("configuration", "firmware", "rig")
_WAIT_SHARES = {"p50": 0.5, "p95": 0.95, "max": 1.0}


def rack_group(health: RackHealth) -> Group:
    """Return what a rack pushes of itself; a ratio without anything to count is absent, not zero."""
    families = Families({})
    window = {"days": str(health.days)}
    _add_rack(families, health, {"kind": kind_of(health), **window})
    for board in health.boards:
        labels = {"board": board.board, "kind": board.kind, "target": board.target}
        _add_board(families, board, labels, window)
    return Group(JOB, health.rack, "", families)


def kind_of(health: RackHealth) -> str:
    """Return the most real kind of a rack's boards; virtual ones never share a rack with others."""
    kinds = {board.kind for board in health.boards}
    return next((kind for kind in ("physical", "emulated", "virtual") if kind in kinds), "unknown")


def _add_rack(families: Families, health: RackHealth, labels: Mapping[str, str]) -> None:
    families.add("hil_rack_runs", "Runs of the rack in the window.", health.runs, **labels)
    text = "Faults of the rack's runs in the window, by whose they are; the rig's are the infrastructure's."
    for owner in sorted({*OWNERS, *health.infrastructure_faults}):
        families.add(
            "hil_rack_infrastructure_faults",
            text,
            health.infrastructure_faults.get(owner, 0),
            **labels,
            owner=owner,
        )
    text = "How long runs waited for their boards, in label stat by nearest rank."
    for stat, share in _WAIT_SHARES.items():
        if health.lease_waits_s:
            waited_s = nearest_rank(health.lease_waits_s, share)
            families.add("hil_rack_lease_wait_seconds", text, waited_s, **labels, stat=stat)
    text = "Blocking series that were judged again with the same firmware."
    families.add("hil_rack_judged_again", text, health.judged_again, **labels)
    text = "Share of hil_rack_judged_again that blocked, and passed the next time."
    _add_known(families, "hil_rack_flaked_ratio", text, health.flake_ratio, labels)
    text = "Comparisons that were checked: the same two images again, or an image with itself."
    families.add("hil_rack_comparisons_checked", text, health.comparisons_checked, **labels)
    text = "Share of hil_rack_comparisons_checked that had blocked for nothing."
    _add_known(families, "hil_rack_false_regression_ratio", text, health.false_regression_ratio, labels)


def _add_board(
    families: Families, board: BoardHealth, labels: Mapping[str, str], window: Mapping[str, str]
) -> None:
    windowed = {**labels, **window}
    text = "Time of a board in the window: held by runs, and in it measured."
    families.add("hil_rack_board_seconds", text, board.held_s, **windowed, use="held")
    families.add("hil_rack_board_seconds", text, board.measured_s, **windowed, use="measured")
    text = "Share of the window, since the board was first seen, in which a run held it."
    _add_known(families, "hil_rack_board_utilisation_ratio", text, board.utilisation_ratio, windowed)
    families.add("hil_rack_board_runs", "Runs that the board took part in.", board.runs, **windowed)
    text = "Share of hil_rack_board_runs in which the rig failed on the board."
    _add_known(families, "hil_rack_board_failed_ratio", text, board.failure_ratio, windowed)
    text = "Mean time from the first of consecutive runs that the rig failed to the next sound one."
    _add_known(families, "hil_rack_board_recovery_seconds", text, board.mean_time_to_recovery_s, windowed)
    text = "Latest runs without a sound one between them in which the rig failed on the board."
    families.add("hil_rack_board_faults_in_a_row", text, board.faults_in_a_row, **windowed)
    text = "1 where the board is in quarantine and takes part in no run, otherwise 0."
    families.add("hil_rack_board_quarantined", text, int(board.quarantine is not None), **labels)
    text = "When the latest run that knew the board started, Unix time."
    _add_known(families, "hil_rack_board_seen_timestamp_seconds", text, unix_s(board.last_seen_utc), labels)


def _add_known(
    families: Families, name: str, text: str, value: float | None, labels: Mapping[str, str]
) -> None:
    if value is not None:
        families.add(name, text, value, **labels)


def rack_groups(history: Path, racks: Collection[str]) -> tuple[list[Group], str]:
    """Return one group for each of ``racks`` that the history knows, and a sentence on what stood in the way.

    ``history`` is the folder of health.jsonl. Without the file there is no group, and nothing to say.
    """
    try:
        known = summarise(read_lines(history / HEALTH_FILE), now_utc=utc_now())
    except HilError as error:
        return [], f"Nothing of the rack's health was pushed: {error}"
    return [rack_group(health) for health in known if health.rack in racks], ""
