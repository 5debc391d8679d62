"""The plan of a workflow run: which legs must leave a verdict, and which are left out for which reason."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.ci.changes import changed_files, kinds_of, merge_base
from hil.ci.event import Event
from hil.ci.targets import TARGETS_FILE, Targets, read_targets
from hil.errors import ConfigError
from hil.firmware.variant import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.plan import ticks_hz_of
from hil.thresholds import load_all
from hil.thresholds.loader import FOLDER

SCHEMA = 1
ENVIRONMENT = "hil-rack"
FORK_ENVIRONMENT = "hil-rack-forks"  # with required reviewers
SUITES = {"nightly": ("nightly", "nightly")}  # trigger → suite of the virtual rack, of physical racks
OTHER_SUITES = ("quick", "pr")


@dataclass(frozen=True)
class Leg:
    """One measurement that the verdict waits for; ``skip`` is the reason why there is none."""

    name: str
    job: str
    suite: str
    target: str = ""
    skip: str = ""


@dataclass(frozen=True)
class CiPlan:
    """What one workflow run does. ``base`` is empty where there is nothing to compare with.

    ``ticks_hz`` are the ticks of the images that the racks' suite needs; each target is built with each.
    """

    event: str
    trigger: str
    repository: str
    pull_request: int | None
    fork: bool
    head: str
    base: str
    environment: str
    changes: tuple[str, ...]
    build: tuple[str, ...]
    legs: tuple[Leg, ...]
    ticks_hz: tuple[int, ...] = (DEFAULT_TICK_HZ,)

    @property
    def racks(self) -> tuple[str, ...]:
        """The targets that a physical rack is to measure."""
        return tuple(leg.target for leg in self.legs if leg.job == "rack" and not leg.skip)

    @property
    def harness_changed(self) -> bool:
        return "harness" in self.changes

    @property
    def may_leave_out_racks(self) -> bool:
        """Whether a rack need not measure an image that is the merge base's."""
        return bool(self.base) and not self.harness_changed

    def images(self, target: str) -> tuple[str, ...]:
        """Return the names of what is built for a target, as bundles and comparisons have them."""
        return tuple(str(Image(target, tick_hz)) for tick_hz in self.ticks_hz)

    def leg(self, name: str) -> Leg:
        return next(leg for leg in self.legs if leg.name == name)

    def outputs(self) -> dict[str, str]:
        """Return what the jobs of the workflow read (``needs.plan.outputs``)."""
        virtual = self.leg("virtual")
        return {
            "head": self.head,
            "base": self.base,
            "build": json.dumps(self.build),
            "ticks-hz": " ".join(map(str, self.ticks_hz)),
            "racks": json.dumps(self.racks),
            "virtual": json.dumps(not virtual.skip),
            "virtual-suite": virtual.suite,
            "rack-suite": next((leg.suite for leg in self.legs if leg.job == "rack"), ""),
            "environment": self.environment,
        }

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **dataclasses.asdict(self)}


def plan_event(repository: Path, event: Event, *, suite: str = "") -> CiPlan:
    """Plan what ``event`` asks for; ``suite`` stands in for each leg's own. Raises ConfigError."""
    base = merge_base(repository, event.base_tip, event.head)
    files = changed_files(repository, base, event.head) if base else ()
    # a change cannot take itself off the racks: which there are is read where it starts from
    racks = read_targets(repository, base or event.head).racks
    build = read_targets(repository, event.head).build
    plan = make_plan(event, base, files, Targets(build, racks), suite=suite)
    ticks_hz = _ticks_hz(repository / FOLDER, plan.outputs()["rack-suite"]) if plan.build else plan.ticks_hz
    return dataclasses.replace(plan, ticks_hz=ticks_hz)


def make_plan(event: Event, base: str, files: Sequence[str], targets: Targets, *, suite: str = "") -> CiPlan:
    """Decide which legs there are. Where ``files`` says nothing, all of them are measured."""
    kinds = kinds_of(files)
    reason = _only_documentation(files) if kinds == ("documentation",) else ""
    virtual_suite, rack_suite = SUITES.get(event.trigger, OTHER_SUITES)
    return CiPlan(
        event=event.name,
        trigger=event.trigger,
        repository=event.repository,
        pull_request=event.pull_request,
        fork=event.fork,
        head=event.head,
        base=base,
        environment=FORK_ENVIRONMENT if event.fork else ENVIRONMENT,
        changes=kinds,
        build=() if reason else tuple(dict.fromkeys((*targets.build, *targets.racks))),
        legs=(
            Leg("virtual", "virtual", suite or virtual_suite, skip=reason),
            *_rack_legs(targets.racks, suite or rack_suite, reason),
        ),
    )


def _ticks_hz(thresholds: Path, suite: str) -> tuple[int, ...]:
    """Return the ticks of the images that a suite needs; all where the run will tell that it is wrong."""
    try:
        return ticks_hz_of(load_all(thresholds), suite)
    except ConfigError:
        return TICKS_HZ


def _rack_legs(racks: Sequence[str], suite: str, reason: str) -> tuple[Leg, ...]:
    if not racks:
        return (Leg("rack", "rack", suite, skip=f"no rack is registered for any target in {TARGETS_FILE}"),)
    return tuple(Leg(f"rack-{target}", "rack", suite, target, reason) for target in racks)


def _only_documentation(files: Sequence[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"only documentation changed ({files[0]}{more})"


def write_plan(plan: CiPlan, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan.to_json(), indent=2) + "\n", encoding="utf-8")


def read_plan(path: Path) -> CiPlan:
    """Read what ``write_plan`` wrote. Raises ConfigError where it is missing or another format."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the plan {path} could not be read: {error}.", next_step=_NO_PLAN) from error
    try:
        return _from_json(stored)
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a plan of format {SCHEMA}: {error!r}.", next_step=_NO_PLAN
        ) from error


_NO_PLAN = "look at the log of the job that plans, or make one: hil ci plan."


def _from_json(stored: Mapping[str, Any]) -> CiPlan:
    values = dict(stored)
    if values.pop("schema") != SCHEMA:
        raise TypeError("another format")
    lists = {key: tuple(values[key]) for key in ("changes", "build", "ticks_hz")}
    return CiPlan(**{**values, **lists, "legs": tuple(Leg(**leg) for leg in values["legs"])})
