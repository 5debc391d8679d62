"""What is known of a rack's health: a line a run, and what follows from many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hil.model import Kind

BoardState = Literal["measured", "faulted", "not-run", "quarantined"]


@dataclass(frozen=True)
class Quarantine:
    """Why a board takes part in no run until somebody releases it."""

    board: str
    since_utc: str
    who: str
    why: str


@dataclass(frozen=True)
class BoardRun:
    """A board's part in one run. ``faults`` counts by owner; ``first_fault`` is the first one's sentence, the
    rig's before others'.

    ``measured_s`` is the sum of what its cases measured, without set-up and turns of other boards.
    ``quarantine`` is there where the state says so.
    """

    board: str
    kind: Kind
    target: str
    state: BoardState
    faults: Mapping[str, int] = field(default_factory=dict)
    first_fault: str = ""
    measured_s: float = 0.0
    quarantine: Quarantine | None = None


@dataclass(frozen=True)
class RunHealth:
    """One run as the lab keeper sees it.

    ``lease_wait_s`` is how long it waited for its boards, ``held_s`` how long it held them, None where the
    run was killed before it let go. ``firmware`` maps a target to the image's SHA-256; ``blocked`` are the
    blocking series that broke a limit or regressed, ``passed`` the blocking ones that did not (ids, sorted).
    ``base`` maps a target to the SHA-256 of what it was compared with, ``compared_blocked`` and
    ``compared_passed`` are the comparisons' ids.
    """

    run_id: str
    started_utc: str
    rack: str
    trigger: str
    exit_code: int
    lease_wait_s: float | None
    held_s: float | None
    boards: tuple[BoardRun, ...]
    firmware: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    blocked: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    compared_blocked: tuple[str, ...] = ()
    compared_passed: tuple[str, ...] = ()
    profile: str = ""
    faults: Mapping[str, int] = field(default_factory=dict)
    first_fault: str = ""


@dataclass(frozen=True)
class BoardHealth:
    """A board over the window. Ratios are from 0 to 1, None where nothing was there to count.

    ``failure_ratio``: runs in which the rig failed on it, of those that it took part in. A recovery lasts
    from the start of the first of consecutive rig-faulted runs to the start of the next sound one;
    ``mean_time_to_recovery_s`` is the mean of those that ended in the window. An outage that lasts is none
    of them: ``down_since_utc`` is its start, "" where the board is up, and ``faults_in_a_row`` its runs.
    ``held_s`` is board time under lease, ``utilisation_ratio`` its share of the window since the board was
    first seen. ``last_fault`` is the rig's latest on it in the window.
    """

    rack: str
    board: str
    kind: Kind
    target: str
    runs: int
    faulted_runs: int
    failure_ratio: float | None
    recoveries: int
    mean_time_to_recovery_s: float | None
    held_s: float
    measured_s: float
    utilisation_ratio: float | None
    faults_in_a_row: int
    last_run_id: str
    last_seen_utc: str
    last_fault: str = ""
    quarantine: Quarantine | None = None
    down_since_utc: str = ""


@dataclass(frozen=True)
class RackHealth:
    """A rack over the window of ``days``.

    ``infrastructure_faults`` counts every fault by its owner; of these, only the rig's are the rack's own. A
    *flake* is a blocked series whose next run with the same firmware on the same board, over the same air,
    passed; ``flake_ratio`` is their share of blocked and passed series that were judged again so. A *false
    regression* is a blocked comparison that the next run of the same two images passed, or one of an image
    with itself; ``false_regression_ratio`` is their share of the comparisons that could be checked so.
    """

    rack: str
    days: int
    runs: int
    boards: tuple[BoardHealth, ...]
    infrastructure_faults: Mapping[str, int]
    lease_waits_s: tuple[float, ...]
    flakes: int
    judged_again: int
    flake_ratio: float | None
    false_regressions: int
    comparisons_checked: int
    false_regression_ratio: float | None
