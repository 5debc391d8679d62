# SPDX-License-Identifier: Apache-2.0
"""What is to be measured, read from rack file, thresholds and options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.gateway_url import masked, problem_of
from hil.base.given import Given
from hil.base.paths import bench_folders
from hil.base.project import given_here
from hil.boards.firmware.build_folder import FLASHER_ARGS
from hil.boards.firmware.bundle import DIGESTS
from hil.boards.firmware.failure import read_failure
from hil.boards.firmware.selection import bundle_folders
from hil.boards.places.settings import rack_with_places
from hil.boards.quarantine import Watch, describe, folder_of, read_quarantine, reason, way_out
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.noise import NoiseSettings
from hil.model import BaseCause, Quarantine, Role
from hil.probe.probe_file import Probe, check_parameters, find_probes
from hil.run.options import RunOptions
from hil.run.plan import Plan, make_plan, spread
from hil.thresholds import Thresholds, among_legs, load_project
from hil.virtual.noise import choose_noise

BENCH_FOLDERS = bench_folders()


@dataclass(frozen=True)
class Campaign:
    """What is to be measured, as read from files and options; nothing has been touched yet."""

    options: RunOptions
    rack: Rack
    thresholds: Mapping[str, Thresholds]
    plan: Plan
    profile: str
    pushgateway: str = ""
    noise: NoiseSettings | None = None
    against: Against | None = None
    no_base: tuple[BaseCause, str] | None = (
        None  # why there is nothing to compare with, where there should be
    )
    quarantined: Mapping[str, Quarantine] = field(default_factory=dict)
    deselected: Sequence[tuple[str, str]] = ()  # board and case id: planned, and left out by pytest's -k
    probes: Mapping[str, Probe] = field(default_factory=dict)
    given: Given = field(default_factory=Given)  # what tells a team's firmware where the rack is

    @property
    def joins_network(self) -> bool:
        """Whether boards are told a network: where they run hil's agent, or a product that is given one."""
        benches = {case.bench for plan in self.plan.boards for case in plan.cases}
        return self.given.is_credentials or not benches <= self.probes.keys()


def bench_stems(folders: Sequence[Path]) -> list[str]:
    """Return the benches that have a test file. Raises ConfigError where two folders have one of a name."""
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in folder.glob("test_*.py")):
        stem = path.stem.removeprefix("test_")
        if stem in found:
            raise ConfigError(
                f"{path}: bench {stem} exists already, in {found[stem]}.",
                next_step="give yours another name, in all three file names.",
            )
        found[stem] = path
    return sorted(found)


def read_campaign(options: RunOptions) -> Campaign:
    """Read rack and thresholds, and plan.

    Raises:
        ConfigError: anything wrong in them, or in the options.
        RigError: all boards are in quarantine, or one that was asked for is.
    """
    against = read_against(options)
    if against:
        check_firmware(against)
    rack = load_rack(options.rack)
    stems = bench_stems(BENCH_FOLDERS)
    thresholds = among_legs(load_project(options.thresholds), options.legs)
    _check_stems(stems, thresholds)
    probes = read_probes(stems, thresholds)
    quarantined = read_quarantine(folder_of(rack, options.out))
    check_asked(rack, options.boards, quarantined)
    kept_out = {board: reason(one, rack_with_places(rack.path)) for board, one in quarantined.items()}
    plan = make_plan(
        rack,
        thresholds,
        selection=options.suite,
        board_ids=[one.id for one in rack.select(options.boards, options.target, options.labels)],
        boots=options.boots or 1,
        probes=frozenset(probes),
        quarantine={} if options.spread else kept_out,
    )
    if options.spread:
        plan = spread(plan, quarantine=kept_out)
    check_present(rack, plan, quarantined)
    return Campaign(
        options,
        rack,
        thresholds,
        plan,
        rack.access_point.profile,
        pushgateway_of(options.pushgateway, rack),
        choose_noise(rack, options.noise),
        against,
        read_failure(options.no_base_because) if options.no_base_because else None,
        quarantined,
        probes=probes,
        given=given_here() if probes else Given(),
    )


def read_probes(stems: Sequence[str], thresholds: Mapping[str, Thresholds]) -> dict[str, Probe]:
    """Return the project's probes by stem: benches that measure its own firmware.

    Raises ConfigError: one is wrong, lacks its test or its thresholds, or is none of a project's.
    """
    probes = find_probes(BENCH_FOLDERS)
    for stem, probe in probes.items():
        files = {f"test_{stem}.py beside it": stem in stems, f"thresholds/{stem}.yaml": stem in thresholds}
        if missing := [name for name, there in files.items() if not there]:
            raise ConfigError(
                f"{probe.path}: there is no {' and no '.join(missing)}, so it cannot be measured.",
                next_step="write what is missing; `hil init` in a project writes an example of each file.",
            )
        for cases in thresholds[stem].suites.values():
            for case in cases:
                check_parameters(probe, case.parameters, thresholds[stem].source)
    return probes


def pushgateway_of(asked: str, rack: Rack) -> str:
    """Return where metrics go, "" for nowhere. Raises ConfigError where ``asked`` is no address."""
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
        next_step="add hil/benches/test_<stem>.py or <stem>.yaml in the folder of thresholds.",
    )


DEFAULT_BUDGET_MIN = 15.0


@dataclass(frozen=True)
class Against:
    """What the candidate is set beside; ``boots`` of each a board where their number is fixed, else 0.

    ``firmware`` is None where it is the candidate's own, unchanged: then the gate is what is measured.
    ``across_idf`` allows it to be of another ESP-IDF release.
    """

    role: Role
    firmware: Path | None
    boots: int = 0
    budget_s: float = math.inf
    across_idf: bool = False

    @property
    def unchanged(self) -> bool:
        return self.firmware is None


def read_against(options: RunOptions) -> Against | None:
    """Return what the run compares with, None for nothing. Raises ConfigError on an impossible budget."""
    if options.reference is not None:
        return Against(
            "reference", options.reference, boots=options.boots or 1, across_idf=options.across_idf
        )
    if options.base is None and not options.unchanged:
        return None
    budget_min = DEFAULT_BUDGET_MIN if options.budget is None else options.budget
    if not budget_min > 0 or math.isinf(budget_min):
        raise ConfigError(
            f"--budget {budget_min:g}: a time budget is a number of minutes above 0.",
            next_step="name the minutes that the run may take, such as --budget 15.",
        )
    return Against("base", options.base, budget_s=60.0 * budget_min, across_idf=options.across_idf)


def check_firmware(against: Against) -> None:
    """Raise ConfigError where the folder holds no firmware: before boards are leased."""
    path = against.firmware
    if (
        path is None
        or bundle_folders(path)
        or any((path / name).is_file() for name in (DIGESTS, FLASHER_ARGS))
    ):
        return
    why = "no bundle and no build is in it" if path.is_dir() else "no such folder"
    raise ConfigError(
        f"--{against.role} {path}: {why}.",
        next_step="make a bundle of the other commit: hil build --target TARGET --at REV --bundle DIR.",
    )


def check_asked(rack: Rack, boards: Sequence[str], quarantined: Mapping[str, Quarantine]) -> None:
    """Raise RigError where a board that was asked for by its id is in quarantine."""
    for board in boards:
        if board in quarantined:
            raise RigError(
                f"board {board} of rack {rack.name} is {describe(quarantined[board])}.",
                next_step=f"{way_out(board, rack_with_places(rack.path))}, or measure on another one.",
            )


def check_present(rack: Rack, plan: Plan, quarantined: Mapping[str, Quarantine]) -> None:
    """Raise RigError where each board of the plan is in quarantine, so that nothing can be measured."""
    if plan.present or not plan.boards:
        return
    boards = [item.board.id for item in plan.boards]
    told = "; ".join(f"{board} is {describe(quarantined[board])}" for board in boards)
    raise RigError(
        f"all requested boards of rack {rack.name} are in quarantine: {told}.",
        next_step=f"when a board works again, {way_out(boards[0], rack_with_places(rack.path))}",
    )


def watch_of(campaign: Campaign) -> Watch | None:
    """Return what puts boards into quarantine at the end of a run; None where the rack file asks for none."""
    rack = campaign.rack
    folder = folder_of(rack, campaign.options.out)
    path = rack_with_places(rack.path)  # a file of leased boards is of no use when the run is through
    return Watch(folder, rack.quarantine_after, path) if rack.quarantine_after else None
