# SPDX-License-Identifier: Apache-2.0
"""More boots of a run that ended undecided: the same images, boards and limits, and only what is open."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.base.paths import PROJECT_THRESHOLDS
from hil.base.project import given_here, product_here
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.boards.health.quarantine import folder_of, read_quarantine
from hil.boards.rack import Rack, load_rack
from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import Case, Verdict, format_product
from hil.probe.probe_file import find_probes
from hil.run.campaign import BENCH_FOLDERS, Against, Campaign, check_asked, pushgateway_of
from hil.run.further import Further, Pair, find_further
from hil.run.plan import Plan, kept_plan, make_plan
from hil.run.plan.deadline import expected_s, look_s
from hil.run.rounds import Comparing, Earlier
from hil.store import RunDirectory, StoredRun, read_run
from hil.store.files import short_path, typed_path
from hil.store.run_info import planned_boots
from hil.thresholds import Thresholds, among_legs, own_limits
from hil.thresholds.loader import FOLDER
from hil.virtual.noise import OFF, choose_noise

# options that say what a run is; with --more it is another run that says so
_SENSELESS: Mapping[str, object] = {
    "suite": "quick", "boots": None, "budget": None, "reference": None, "board": [], "board_target": "",
    "board_label": [],
    "spread": False, "profile": "", "noise": "", "noise_seed": None, "trigger": "local", "legs": 1,
    "thresholds": PROJECT_THRESHOLDS,
}  # fmt: skip


class NothingMore(HilError):  # noqa: N818 (an answer rather than an error)
    """More boots decide nothing; ``exit_code`` is the run's.

    ``is_neutral`` says that it is undecided, and that no policy makes that a failure.
    """

    owner = "run"

    def __init__(self, sentence: str, verdict: Verdict) -> None:
        super().__init__(sentence)
        self.exit_code = ExitCode(verdict.exit_code)
        self.is_neutral = verdict.is_neutral


@dataclass(frozen=True)
class More:
    """A run that is taken further. ``builds`` are those that it measured, by image and role."""

    stored: StoredRun
    further: tuple[Further, ...]
    thresholds: Mapping[str, Thresholds]
    builds: Mapping[Image, Mapping[str, Firmware]]

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory(self.stored.path)

    def builds_of(self, role: str) -> dict[Image, Firmware]:
        return {image: builds[role] for image, builds in self.builds.items()}

    def comparing(self) -> Comparing:
        """Return what the boot loop goes on with."""
        own = {image: one for image in self.builds for one in self.further if _is_of(one, image)}
        earlier = Earlier(self.stored.journal.entries, {image: one.whole for image, one in own.items()})
        ask = functools.partial(open_cases, thresholds=self.thresholds)
        return Comparing({image: one.comparison for image, one in own.items()}, ask, earlier=earlier)

    def noise_boots(self) -> dict[str, int]:
        """Return how many boots of a board have had simulated noise: the next draw goes on behind them."""
        found: dict[str, int] = {}
        for record in self.stored.records:
            boot = record.environment.get("noise", {}).get("boot")
            if isinstance(boot, int):
                found[record.board] = max(boot + 1, found.get(record.board, 0))
        return found

    def sentence(self) -> str:
        """Return what is measured now, for whoever watches."""
        pairs = {pair for one in self.further for pair in one.pairs}
        cases, boards = {case for _board, case in pairs}, sorted({board for board, _case in pairs})
        return (
            f"Taking {short_path(self.stored.path)} further: {_boots(self.further)} boots of each a board, "
            f"{len(cases)} case{'s' * (len(cases) > 1)} on {', '.join(boards)}."
        )


def _is_of(further: Further, image: Image) -> bool:
    return further.comparison.image == str(image)


@dataclass(frozen=True)
class Offer:
    """What taking a run further means: so many more boots of each image on ``boards``, about so long.

    ``everywhere`` says that these are all boards of what is compared.
    """

    boots: int
    boards: tuple[str, ...]
    minutes: int
    everywhere: bool

    @property
    def sentence(self) -> str:
        where = "a board" if self.everywhere else f"on {', '.join(self.boards)}"
        return f"{self.boots} more boots of each {where}, about {self.minutes} min"

    def command(self, run_path: str) -> str:
        """Return what it means, and the command."""
        return f"{self.sentence}: hil run --more {shlex.quote(run_path)}"

    def to_json(self) -> dict[str, Any]:
        """Return what run.json keeps, for whoever has not the journal at hand."""
        return {"boots": self.boots, "boards": list(self.boards), "minutes": self.minutes}


def find_offer(path: Path, verdict: Verdict) -> Offer | None:
    """Return what taking a run further would mean; None where it ended decided or is not taken further.

    ``verdict`` is the run's. Raises as find_more() does.
    """
    if not _has_undecided(verdict):
        return None
    try:
        stored, _limits, further = find_more(path, verdict)
    except NothingMore:
        return None
    boards = {board for one in further for board, _case in one.pairs}
    everyone = {board for one in further for board in one.comparison.boards}
    minutes = max(1, round(_takes_s(stored, further) / 60))
    return Offer(_boots(further), tuple(sorted(boards)), minutes, boards == everyone)


def _boots(further: Sequence[Further]) -> int:
    return max(max(one.boots) for one in further)


def _takes_s(stored: StoredRun, further: Sequence[Further]) -> float:
    """Return about how long more boots take: the images one after the other, the boards side by side."""
    cases = {record.case_id: Case(record.bench, record.parameters) for record in stored.records}
    total_s = 0.0
    for one in further:
        boards = {board for board, _case in one.pairs}
        measuring_s = [
            sum(expected_s(cases[case_id]) for own, case_id in one.pairs if own == board) for board in boards
        ]
        total_s += look_s(sum(one.boots), measuring_s)
    return total_s


def find_more(
    path: Path, verdict: Verdict | None = None
) -> tuple[StoredRun, dict[str, Thresholds], tuple[Further, ...]]:
    """Return a run, its limits, and what more boots of it would be for.

    ``verdict`` is the one on all that it holds by now; the run is judged where it is not given.

    Raises:
        ConfigError: no run, or its files are damaged.
        NothingMore: its outcome is decided, it is not whole, or all of its looks are measured.
    """
    stored = read_run(path)
    limits = among_legs(own_limits(stored), int(stored.info.get("legs", 1)))
    verdict = verdict or judge(stored.journal.entries, limits, planned_boots(stored.info))
    why = _why_not(verdict)
    further = () if why else find_further(stored.journal.entries, limits)
    if further:
        return stored, limits, further
    stale = (
        "" if verdict == stored.verdict else f" Write its verdict anew: hil gate {typed_path(stored.path)}"
    )
    told = f"{short_path(stored.path)}: nothing more is measured: {why or _why_none(verdict)}."
    raise NothingMore(f"{told} {verdict.sentence}{stale}", verdict)


def _why_not(verdict: Verdict) -> str:
    """Say why a run is not one to be taken further, whatever is open in it; "" where it may be."""
    if verdict.faults:
        return "something failed in it, so it has to be measured anew"
    if any(entry.expected for entry in verdict.not_run):
        return "it was not measured to its end, so it has to be measured anew"
    return "it is decided" if verdict.outcome == "regressed" else ""


def _has_undecided(verdict: Verdict) -> bool:
    return any(item.blocking and item.outcome == "undecided" for item in verdict.compared)


def _why_none(verdict: Verdict) -> str:
    if not any(item.blocking for item in verdict.compared):
        return "it compares nothing that may block"
    if _has_undecided(verdict):
        return "there is no further look"
    return "its comparisons are decided"


def refuse_beside_more(given: Collection[str]) -> None:
    """Raise ConfigError where an option was given that says what a run is."""
    for name in given:
        if name in (*_SENSELESS, "target", "label"):  # which pytest calls board_target and board_label
            option = f"--{name.removeprefix('board_').replace('_', '-')}"
            raise ConfigError(
                f"{option} with --more: a run is taken further with its own cases, boards, air and limits.",
                next_step=f"leave {option} out, or measure anew without --more.",
            )


def read_more(option: Any) -> Campaign:
    """Plan more boots of the run ``option.more``.

    Raises:
        ConfigError: anything wrong in the options, the run's files or the rack file; another rack, other
            boards, or other images than the run measured.
        RigError: a board is in quarantine.
        NothingMore: as find_more() does.
    """
    refuse_beside_more(
        [name for name, default in _SENSELESS.items() if getattr(option, name, default) != default]
    )
    stored, limits, further = find_more(option.more)
    info, out = stored.info, stored.path.parent
    _check_product(stored)
    rack = load_rack(option.rack)
    pairs = {pair for one in further for pair in one.pairs}
    _check_rack(stored, rack, {board for board, _case in pairs})
    check_asked(rack, sorted({board for board, _case in pairs}), read_quarantine(folder_of(rack, out)))
    probes = find_probes(BENCH_FOLDERS)
    plan = _plan(stored, rack, limits, pairs, frozenset(probes))
    noise: Mapping[str, Any] = info.get("noise", {})
    silent = OFF if rack.is_virtual else ""
    return Campaign(
        rack=rack,
        thresholds=limits,
        thresholds_folder=stored.path / FOLDER,
        plan=plan,
        profile=str(info.get("profile") or rack.access_point.profile),
        firmware=option.firmware,
        out=out,
        wait_s=option.wait,
        trigger=str(info.get("trigger", "local")),
        pushgateway=pushgateway_of(option.pushgateway, rack),
        report=not option.no_report,
        keep_captures=option.keep_captures,
        noise=choose_noise(rack, str(noise.get("profile", silent)), noise.get("seed")),
        against=Against("base", option.base or Path(), across_idf=True),
        legs=int(info.get("legs", 1)),
        more=More(stored, further, limits, _find_builds(stored, plan, option)),
        probes=probes,
        given=given_here(),
    )


def _check_product(stored: StoredRun) -> None:
    """Raise ConfigError where a run is of another product than this project's."""
    own = stored.info.get("product", "")
    if own != product_here():
        raise ConfigError(
            f"{short_path(stored.path)} measured {format_product(own)}, and this project is "
            f"{format_product(product_here())}: figures of two products are not compared.",
            next_step=f'go to its project, or say here, in hil.toml: product = "{own}".',
        )


def _check_rack(stored: StoredRun, rack: Rack, wanted: Collection[str]) -> None:
    """Raise ConfigError where a rack file is not of the rack, and of the boards, that a run measured on."""
    where = f"{short_path(stored.path)} was measured on"
    if rack.name != stored.info.get("rack"):
        raise ConfigError(
            f"{where} the rack {stored.info.get('rack')!r}, and {rack.path} is of {rack.name!r}.",
            next_step="name its rack file: --rack FILE.",
        )
    now = {board.id: (board.target, board.kind) for board in rack.boards}
    for board in stored.info.get("boards", []):
        then = (board.get("target"), board.get("kind"))
        if board.get("id") in wanted and now.get(board["id"]) != then:
            found = " of kind ".join(now[board["id"]]) if board["id"] in now else "no such board"
            raise ConfigError(
                f"{where} board {board['id']}, {' of kind '.join(map(str, then))}; {rack.path} has {found}.",
                next_step="name the rack file of then (--rack FILE), or measure anew.",
            )


def _plan(
    stored: StoredRun,
    rack: Rack,
    limits: Mapping[str, Thresholds],
    pairs: Collection[Pair],
    probes: frozenset[str],
) -> Plan:
    """Plan the open cases in the order of the run. Raises ConfigError where one is not possible any more."""
    boards = sorted({board for board, _case in pairs})
    whole = make_plan(
        rack, limits, selection=str(stored.info.get("suite", "")), board_ids=boards, probes=probes
    )
    plan = kept_plan(whole, set(pairs))
    planned = {(board.board.id, case.case_id) for board in plan.boards for case in board.cases}
    for board, case_id in sorted(set(pairs) - planned):
        raise ConfigError(
            f"{case_id} is open in {short_path(stored.path)}, and {rack.path} rules it out on board {board}.",
            next_step="name the rack file of then (--rack FILE), or measure anew.",
        )
    return plan


def _find_builds(stored: StoredRun, plan: Plan, option: Any) -> dict[Image, dict[str, Firmware]]:
    """Return the images that the run measured. Raises ConfigError where one is not to be found."""
    candidates = stored.info.get("firmware", {})
    others = stored.info.get("compared", {}).get("firmware", {})
    return {
        image: {
            "candidate": _find_build(image, candidates.get(str(image), {}), option.firmware, "firmware"),
            "base": _find_build(image, others.get(str(image), {}), option.base, "base"),
        }
        for image in plan.images
    }


def _find_build(image: Image, told: Mapping[str, Any], given: Path | None, name: str) -> Firmware:
    path = given or Path(str(told.get("build_dir", "")))
    way_out = f"name it: --{name} DIR, a bundle or a build of the very same bytes; else measure anew."
    try:
        found = find_firmware(path, image)
    except ConfigError as error:
        raise ConfigError(
            f"{image}: what the run measured as its {name} is not there: {error.sentence}", next_step=way_out
        ) from error
    if found.sha256 != told.get("sha256"):
        raise ConfigError(
            f"{image}: {path} holds another image ({found.sha256:.12}) than the run measured as its {name} "
            f"({told.get('sha256', 'unknown'):.12}).",
            next_step=way_out,
        )
    return found
