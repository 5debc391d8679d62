# SPDX-License-Identifier: Apache-2.0
"""What is to be measured, read from rack file, thresholds and options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.base.gateway_url import masked, problem_of
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build_folder import FLASHER_ARGS
from hil.boards.firmware.bundle import DIGESTS
from hil.boards.firmware.selection import bundle_folders
from hil.boards.health.quarantine import Watch, describe, folder_of, read_quarantine, reason, way_out
from hil.boards.health.types import Quarantine
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.noise import NoiseSettings
from hil.model import Role
from hil.run.plan import Plan, make_plan
from hil.thresholds import Thresholds, among_legs, load_all
from hil.virtual.noise import choose_noise

BENCHES_DIR = PROJECT_ROOT / "hil" / "benches"


@dataclass(frozen=True)
class Campaign:
    """What is to be measured, as read from files and options; nothing has been touched yet."""

    rack: Rack
    thresholds: Mapping[str, Thresholds]
    thresholds_folder: Path
    plan: Plan
    profile: str
    firmware: Path | None
    out: Path
    wait_s: float
    trigger: str
    pushgateway: str
    report: bool
    keep_captures: bool
    noise: NoiseSettings | None = None
    against: Against | None = None
    quarantined: Mapping[str, Quarantine] = field(default_factory=dict)
    legs: int = 1  # runs that judge one pull request together
    deselected: Sequence[tuple[str, str]] = ()  # board and case id: planned, and left out by pytest's -k


def bench_stems(folder: Path) -> list[str]:
    """Return the benches that have a test file."""
    return sorted(path.stem.removeprefix("test_") for path in folder.glob("test_*.py"))


def read_campaign(option: Any) -> Campaign:
    """Read rack and thresholds, and plan.

    Raises:
        ConfigError: anything wrong in them, or in the options.
        RigError: all boards are in quarantine, or one that was asked for is.
    """
    against = read_against(option)
    if against:
        check_firmware(against)
    rack = load_rack(option.rack)
    stems = bench_stems(BENCHES_DIR)
    thresholds = among_legs(load_all(option.thresholds), option.legs)
    _check_stems(stems, thresholds)
    quarantined = read_quarantine(folder_of(rack, option.out))
    check_asked(rack, option.board, quarantined)
    plan = make_plan(
        rack,
        thresholds,
        selection=option.suite,
        board_ids=[board.id for board in rack.select(option.board, option.board_target)],
        boots=option.boots or 1,
        quarantine={board: reason(one, rack.path) for board, one in quarantined.items()},
    )
    check_present(rack, plan, quarantined)
    if option.profile and not rack.is_virtual:
        raise ConfigError(
            f"--profile {option.profile} needs a virtual access point; rack {rack.name} has an external one.",
            next_step="leave --profile out.",
        )
    profile = option.profile or rack.access_point.profile
    return Campaign(
        rack,
        thresholds,
        option.thresholds,
        plan,
        profile,
        option.firmware,
        option.out,
        option.wait,
        option.trigger,
        _pushgateway(option.pushgateway, rack),
        not option.no_report,
        option.keep_captures,
        choose_noise(rack, option.noise, option.noise_seed),
        against,
        quarantined,
        option.legs,
    )


def _pushgateway(asked: str, rack: Rack) -> str:
    problem = problem_of(asked) if asked else ""
    if problem:
        raise ConfigError(f"--pushgateway {masked(asked)}: {problem}")
    return asked or rack.pushgateway


def _check_stems(stems: list[str], thresholds: Mapping[str, Thresholds]) -> None:
    if set(stems) == set(thresholds):
        return
    odd = ", ".join(sorted(set(stems) ^ set(thresholds)))
    raise ConfigError(
        f"a bench has a test file or a thresholds file but not both: {odd}.",
        next_step="add hil/benches/test_<stem>.py or thresholds/<stem>.yaml.",
    )


DEFAULT_BUDGET_MIN = 15.0


@dataclass(frozen=True)
class Against:
    """What the candidate is set beside; ``boots`` of each a board where their number is fixed, else 0."""

    role: Role
    firmware: Path
    boots: int = 0
    budget_s: float = math.inf


def read_against(option: Any) -> Against | None:
    """Return what the options ask for, None where nothing is compared.

    Raises ConfigError where two options contradict each other, or one says nothing without another.
    """
    base, reference = option.base, option.reference
    if base is not None and reference is not None:
        raise ConfigError(
            "--base and --reference: a run compares with one other firmware.",
            next_step="leave one of them out; measure the other comparison in a run of its own.",
        )
    _check_pairs(option)
    if reference is not None:
        return Against("reference", reference, boots=option.boots or 1)
    if base is None:
        return None
    budget_min = DEFAULT_BUDGET_MIN if option.budget is None else option.budget
    if not budget_min > 0 or math.isinf(budget_min):
        raise ConfigError(
            f"--budget {budget_min:g}: a time budget is a number of minutes above 0.",
            next_step="name the minutes that the run may take, such as --budget 15.",
        )
    return Against("base", base, budget_s=60.0 * budget_min)


def check_firmware(against: Against) -> None:
    """Raise ConfigError where the folder holds no firmware: before boards are leased."""
    path = against.firmware
    if bundle_folders(path) or any((path / name).is_file() for name in (DIGESTS, FLASHER_ARGS)):
        return
    why = "no bundle and no build is in it" if path.is_dir() else "no such folder"
    raise ConfigError(
        f"--{against.role} {path}: {why}.",
        next_step="make a bundle of the other commit: hil build --target TARGET --at REV --bundle DIR.",
    )


def _check_pairs(option: Any) -> None:
    if option.base is not None and option.boots is not None:
        raise ConfigError(
            f"--boots {option.boots} with --base: the gate decides how many boots it needs.",
            next_step="leave --boots out, bound it by --budget, or compare a fixed number with --reference.",
        )
    if option.budget is not None and option.base is None:
        raise ConfigError(
            f"--budget {option.budget:g} bounds a comparison, and nothing is compared with a base.",
            next_step="add --base FIRMWARE, or leave --budget out.",
        )


def check_asked(rack: Rack, boards: Sequence[str], quarantined: Mapping[str, Quarantine]) -> None:
    """Raise RigError where a board that was asked for by its id is in quarantine."""
    for board in boards:
        if board in quarantined:
            raise RigError(
                f"board {board} of rack {rack.name} is {describe(quarantined[board])}.",
                next_step=f"{way_out(board, rack.path)}, or measure on another one.",
            )


def check_present(rack: Rack, plan: Plan, quarantined: Mapping[str, Quarantine]) -> None:
    """Raise RigError where each board of the plan is in quarantine, so that nothing can be measured."""
    if plan.present or not plan.boards:
        return
    boards = [item.board.id for item in plan.boards]
    told = "; ".join(f"{board} is {describe(quarantined[board])}" for board in boards)
    raise RigError(
        f"each board of rack {rack.name} that the run asks for is in quarantine: {told}.",
        next_step=f"when it is sound again, {way_out(boards[0], rack.path)}",
    )


def watch_of(campaign: Campaign) -> Watch | None:
    """Return what puts boards into quarantine at the end of a run; None where the rack file asks for none."""
    rack = campaign.rack
    folder = folder_of(rack, campaign.out)
    return Watch(folder, rack.quarantine_after, rack.path) if rack.quarantine_after else None
