# SPDX-License-Identifier: Apache-2.0
"""The plan of a workflow run: which legs must leave a verdict, and which are left out for which reason."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from hil.base.errors import ConfigError
from hil.base.reading import SETTINGS_MOST_BYTES, read_at_most
from hil.boards.firmware.build import VIRTUAL_TARGETS
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.ci.event import (
    TARGETS_FILE,
    CiEvent,
    Kind,
    Targets,
    changed_files,
    kinds_of,
    merge_base,
    read_targets,
    virtual_targets,
)
from hil.ci.night import LEG, VirtualNight, references_tonight, virtual_night
from hil.run.plan import ticks_hz_of
from hil.store.codec import build, decode
from hil.thresholds import load_project
from hil.thresholds.loader import FOLDER
from hil.virtual.emulator.drivers import COUNTING, target_of

SCHEMA = 1
SUITES = {"nightly": ("nightly", "nightly")}  # trigger → suite of the virtual rack, of physical racks
OTHER_SUITES = ("quick", "pr")
COMPARED_TARGET = "virtual-esp32"  # one chip: virtual ones run the same C, and two boards decide in minutes
COMPARED_SUITE = "pr"  # of the legs that compare: with the merge base, at night with the reference
NOTHING_FLASHED = "neither firmware nor what measures or judges it has changed"
NO_BASE = "there is no merge base to compare with"
RULER_ON_BOTH_SIDES = "what the changed ruler itself does to the figures, as both sides are measured by it"
RACK_JOBS = ("rack", "night-rack")
IDF_VERSION, RACK_LABEL = "v5.5.4", "hil"
EMULATED_JOB: Final = "emulated"
EMULATED_SUITE = "sealed"
EMULATOR_JOB: Final = "emulator"  # a project's suite in the emulator that its rack file names
INSTRUCTION_COST = "instruction cost (emulated)"  # never called performance: no figure of it is a time
MEASURES: frozenset[Kind] = frozenset({"harness", "ruler"})  # or judges
# a leg's job → the job of measure.yml that measures it, where that has another name
JOBS = {"compare": "virtual", "night": "virtual", EMULATED_JOB: "build", "night-rack": "rack"}
MINUTES = {
    "virtual": 40,
    "compare": 40,
    "night": 70,
    EMULATED_JOB: 25,
    EMULATOR_JOB: 40,
    "rack": 80,
    "night-rack": 130,
}
MINUTES_AT_NIGHT = {**MINUTES, "virtual": 60, "rack": 280}
AROUND_MINUTES = 20  # before and after a measurement, to set up, to build and to keep what was measured


LEG_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_MOST_LEGS = 40
Job = Literal["virtual", "compare", "rack", "emulated", "emulator", "night", "night-rack"]


@dataclass(frozen=True)
class Leg:
    """One measurement that the verdict waits for; ``skip`` is the reason why there is none.

    ``reference`` is the commit that a night measures beside the head; where ``unchanged`` it measures the
    head beside itself, which blocks nothing. Where ``undecided`` the reason to skip it leaves it so: its
    rack is off, say.
    """

    name: Annotated[str, Meta(pattern=rf"\A{LEG_NAME}\Z")]
    job: Job
    suite: str
    target: str = ""
    skip: str = ""
    reference: str = ""
    unchanged: bool = False
    undecided: bool = False

    @property
    def shown(self) -> str:
        """What people read in the place of its name."""
        return f"{INSTRUCTION_COST} {self.target}" if self.job == EMULATED_JOB else self.name

    @property
    def measured_by(self) -> str:
        """The job of measure.yml that measures it."""
        return JOBS.get(self.job, self.job)

    @property
    def compares_virtually(self) -> bool:
        """Whether it measures head and base on the virtual boards of COMPARED_TARGET."""
        return self.job == "compare" or (self.job == "virtual" and self.target == COMPARED_TARGET)

    @property
    def board_target(self) -> str:
        """The target of the boards that it runs on, "" where any will do."""
        return target_of(self.target) if self.job in (EMULATED_JOB, EMULATOR_JOB) else self.target


@dataclass(frozen=True)
class CiPlan:
    """What one workflow run does. ``base`` is empty where there is nothing to compare with.

    ``ticks_hz`` are the ticks of the images that the racks' suite needs; each target is built with each.
    ``compare_ticks_hz`` are those of the suite that is compared, ``virtual_targets`` the virtual rack's.
    ``virtual_boards`` are those of it that measure the suite of a night; all where there are none.

    ``folder`` is where a team's project is in its repository, "" where the repository is the tool's own;
    ``product`` is the ESP-IDF project whose own image is measured too, ``limits`` the folder of the limits.
    """

    event: str
    trigger: str
    repository: str
    pull_request: int | None
    fork: bool
    head: Annotated[str, Meta(pattern=r"\A[0-9a-f]{40}\Z")]
    base: Annotated[str, Meta(pattern=r"\A([0-9a-f]{40})?\Z")]
    changes: tuple[Kind, ...]
    build: tuple[str, ...]
    legs: tuple[Leg, ...]
    ticks_hz: tuple[int, ...] = (DEFAULT_TICK_HZ,)
    compare_ticks_hz: tuple[int, ...] = (DEFAULT_TICK_HZ,)
    virtual_targets: tuple[str, ...] = VIRTUAL_TARGETS
    virtual_boards: tuple[str, ...] = ()
    folder: str = ""
    product: str = ""
    limits: str = FOLDER
    idf_version: str = IDF_VERSION
    rack_label: str = RACK_LABEL

    def targets_of(self, job: str) -> tuple[str, ...]:
        """Return the targets that a job is to measure."""
        return tuple(leg.target for leg in self.legs if leg.job == job and not leg.skip)

    @property
    def may_leave_out(self) -> bool:
        """Whether a rack or an emulator need not measure an image that is the merge base's.

        Not where what measures has changed: the merge base is built with the head's benches, so that its
        image is the same, and what an edited bench measures has never met the limits.
        """
        return bool(self.base) and not MEASURES.intersection(self.changes)

    def images(self, target: str) -> tuple[str, ...]:
        """Return the names of what is built for a target, as bundles and comparisons have them."""
        own = [Image(target, tick_hz) for tick_hz in self.ticks_hz]
        return tuple(map(str, [*own, *([Image(target, product=True)] if self.product else [])]))

    def images_of(self, leg: Leg) -> tuple[str, ...]:
        """Return the names of the images that a leg measures: for the instruction cost that of one tick."""
        return (str(Image(leg.target)),) if leg.job == EMULATED_JOB else self.images(leg.target)

    @property
    def references(self) -> tuple[str, ...]:
        """The commits that this night measures beside the head."""
        return tuple(dict.fromkeys(leg.reference for leg in self.legs if leg.reference))

    @property
    def legs_of_alpha(self) -> int:
        """How many legs share alpha: what is exact has no false alarms to share."""
        return max(1, sum(not leg.skip for leg in self.legs if leg.job != EMULATED_JOB))

    def minutes_of(self, leg: Leg) -> int:
        """Return how long the measurement of a leg may take."""
        return (MINUTES_AT_NIGHT if self.trigger == "nightly" else MINUTES)[leg.job]

    def matrix_of(self, job: str) -> list[dict[str, object]]:
        """Return the matrix of a job of measure.yml: its legs, and when GitHub ends each."""
        legs = (leg for leg in self.legs if leg.measured_by == job and not leg.skip)
        return [
            {
                "leg": leg.name,
                "target": leg.target,
                "suite": leg.suite,
                "minutes": self.minutes_of(leg) + AROUND_MINUTES,
            }
            for leg in legs
        ]

    def leg(self, name: str) -> Leg:
        return next(leg for leg in self.legs if leg.name == name)

    def outputs(self) -> dict[str, str]:
        """Return what the jobs of measure.yml read (``needs.plan.outputs``); `hil ci` reads the plan."""
        return {
            "nothing": json.dumps(all(leg.skip for leg in self.legs)),
            "virtual": json.dumps(self.matrix_of("virtual")),
            "build": json.dumps(self.build),
            "emulated": json.dumps(self.targets_of(EMULATED_JOB)),
            "emulators": json.dumps(self.matrix_of(EMULATOR_JOB)),
            "racks": json.dumps(self.matrix_of("rack")),
            "limits": self.limits,
            "idf-version": self.idf_version,
            "rack-label": self.rack_label,
        }

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **dataclasses.asdict(self)}


def plan_event(
    repository: Path, event: CiEvent, *, suite: str = "", off: Mapping[str, str] = MappingProxyType({})
) -> CiPlan:
    """Plan what ``event`` asks for; ``suite`` stands in for each leg's own. Raises ConfigError.

    ``off`` is why the rack of a chip measures nothing.
    """
    base = merge_base(repository, event.base_tip, event.head)
    files = changed_files(repository, base, event.head) if base else ()
    # a change cannot take itself off the racks: which there are is read where it starts from
    racks = read_targets(repository, base or event.head).racks
    build = read_targets(repository, event.head).build
    thresholds = repository / FOLDER
    references = references_tonight(thresholds) if event.trigger == "nightly" else ()
    night = virtual_night(repository, suite or SUITES["nightly"][0]) if event.trigger == "nightly" else None
    plan = make_plan(
        event, base, files, Targets(build, racks), suite=suite, references=references, night=night
    )
    rack_suite = next((leg.suite for leg in plan.legs if leg.job == "rack"), "")
    needed = {DEFAULT_TICK_HZ, *_ticks_hz(thresholds, rack_suite)}
    ticks_hz = tuple(tick_hz for tick_hz in TICKS_HZ if tick_hz in needed) if plan.build else plan.ticks_hz
    return dataclasses.replace(
        plan,
        legs=tuple(without_rack(leg, off) for leg in plan.legs),
        ticks_hz=ticks_hz,
        compare_ticks_hz=_ticks_hz(thresholds, COMPARED_SUITE),
        virtual_targets=virtual_targets(repository),
        virtual_boards=night.boards if night else (),
    )


def make_plan(
    event: CiEvent,
    base: str,
    files: Sequence[str],
    targets: Targets,
    *,
    suite: str = "",
    references: Sequence[str] = (),
    night: VirtualNight | None = None,
) -> CiPlan:
    """Decide which legs there are. Where ``files`` says nothing, all of them are measured.

    A change of neither firmware nor what measures it needs no chip.

    ``suite`` stands in for those of the legs that do not compare. ``references`` are the commits that a night
    measures beside the head: none, one, or two while one takes the other's place.
    ``night`` is how the virtual rack measures one.
    """
    kinds = kinds_of(files)
    reason = _only_documentation(files) if kinds == ("documentation",) else ""
    no_chip = reason or NOTHING_FLASHED * (bool(kinds) and not {"firmware", *MEASURES}.intersection(kinds))
    virtual_suite, rack_suite = SUITES.get(event.trigger, OTHER_SUITES)
    return CiPlan(
        event=event.name,
        trigger=event.trigger,
        repository=event.repository,
        pull_request=event.pull_request,
        fork=event.fork,
        head=event.head,
        base=base,
        changes=kinds,
        build=() if no_chip else tuple(dict.fromkeys((*targets.build, *targets.racks, *COUNTING))),
        legs=(
            *_virtual_legs(suite or virtual_suite, night.benches if night else (), reason),
            *_rack_legs(targets.racks, suite or rack_suite, no_chip),
            *(Leg(target_of(chip), EMULATED_JOB, EMULATED_SUITE, chip, no_chip) for chip in COUNTING),
            *(
                _night_legs(targets.racks, references)
                if event.trigger == "nightly"
                else (Leg("compare", "compare", COMPARED_SUITE, skip=reason or NO_BASE * (not base)),)
            ),
        ),
    )


def _virtual_legs(suite: str, benches: Sequence[str], reason: str) -> tuple[Leg, ...]:
    """Return a leg for each bench of a night, so that they are measured beside each other; else one."""
    if not benches:
        return (Leg("virtual", "virtual", suite, skip=reason),)
    of_suite = f"({suite})" if " " in suite else suite
    return tuple(
        Leg(f"virtual-{bench}", "virtual", f"{of_suite} and {bench}", skip=reason) for bench in benches
    )


def _ticks_hz(thresholds: Path, suite: str) -> tuple[int, ...]:
    """Return the ticks of the images that a suite needs; all where the run will tell that it is wrong."""
    try:
        return ticks_hz_of(load_project(thresholds), suite)
    except ConfigError:
        return TICKS_HZ


def without_rack(leg: Leg, off: Mapping[str, str]) -> Leg:
    if leg.job not in RACK_JOBS or leg.skip or leg.target not in off:
        return leg
    return dataclasses.replace(leg, skip=off[leg.target], undecided=True)


def _rack_legs(racks: Sequence[str], suite: str, reason: str) -> tuple[Leg, ...]:
    if not racks:
        return (Leg("rack", "rack", suite, skip=f"no rack is registered for any target in {TARGETS_FILE}"),)
    return tuple(Leg(f"rack-{target}", "rack", suite, target, reason) for target in racks)


def _night_legs(racks: Sequence[str], references: Sequence[str]) -> Iterator[Leg]:
    """Yield a leg for the virtual rack and each target, and for each reference; without one, raw values.

    A target has one more, by which its rack is qualified: the virtual rack is another machine each night.
    """
    for number, reference in enumerate(references or ("",)):
        suffix = "-renewal" * number
        yield Leg(f"{LEG}virtual{suffix}", "night", COMPARED_SUITE, reference=reference)
        for target in racks:
            yield Leg(f"{LEG}{target}{suffix}", "night-rack", COMPARED_SUITE, target, reference=reference)
    for target in racks:
        yield Leg(f"unchanged-{target}", "night-rack", COMPARED_SUITE, target, unchanged=True)


def _only_documentation(files: Sequence[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"only documentation changed ({files[0]}{more})"


def write_plan(plan: CiPlan, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan.to_json(), indent=2) + "\n", encoding="utf-8")


def read_plan(path: Path) -> CiPlan:
    """Read what ``write_plan`` wrote. Raises ConfigError where it is missing or no plan of ours.

    Whether the plan asks for what the change needs hil.ci.verified looks at.
    """
    try:
        return _parsed(read_at_most(path, SETTINGS_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} is not a readable plan of format {SCHEMA}: {error}.",
            next_step="look at the log of the job that plans, or make one: hil ci plan.",
        ) from error


def _parsed(content: bytes) -> CiPlan:
    """Return a plan that is ours. Raises ValueError."""
    stored = decode(content)
    if not isinstance(stored, dict) or stored.pop("schema", None) != SCHEMA:
        raise ValueError("another format")
    plan = build(CiPlan, stored)
    names = [leg.name for leg in plan.legs]
    if len(names) > _MOST_LEGS or len(set(names)) < len(names):
        raise ValueError(f"it has {len(names)} legs, or one twice")
    return plan


def read_plan_of(path: Path, head: str) -> CiPlan:
    """Return a plan for the commit ``head``. Raises ConfigError as read_plan(), or if it is for another."""
    plan = read_plan(path)
    if plan.head != head:
        raise ConfigError(f"the plan is for the commit {plan.head[:12]}, but the run is for {head[:12]}.")
    return plan
