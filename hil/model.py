# SPDX-License-Identifier: Apache-2.0
"""The records that everything else reads: samples, environment, faults, verdicts.

Records are immutable. A changed record is a new record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

SCHEMA_VERSION = 1

Scalar = int | float | str | bool | None
Kind = Literal["physical", "emulated", "virtual"]
PastKind = Kind | Literal["imported"]  # what the history holds: measured here, or brought along
Role = Literal["candidate", "base", "reference"]
Looks = tuple[tuple[int, int], ...]  # boots a board, (candidate, other) from the start on

LARGEST = 1 << 53  # a board sends 32 bits, a peer's columns fit; beyond it JSON readers lose digits
Name = Annotated[str, Meta(min_length=1)]
Sample = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Span = Annotated[float, Meta(ge=0)]  # of time
LONGEST_PRODUCT = 32
PRODUCT_PATTERN = "^([a-z0-9]+(-[a-z0-9]+)*)?$"  # neither / nor :, which separate the parts of a series' name
Product = Annotated[str, Meta(pattern=PRODUCT_PATTERN, max_length=LONGEST_PRODUCT)]

KINDS: tuple[Kind, ...] = ("physical", "emulated", "virtual")
UNREAL: tuple[Kind, ...] = ("emulated", "virtual")  # those that are no silicon, but processes of their rack
IMPORTED: Literal["imported"] = "imported"  # kind, trigger and rack of figures that nobody measured here
SUITE_RACK = "pytest"  # of what a team's own pytest suite measured


def format_case_id(bench: str, parameters: Mapping[str, Scalar]) -> str:
    """Name a case: ``bench/key=value,…`` with sorted keys; the same parameters give the same name."""
    pairs = ",".join(f"{key}={parameters[key]}" for key in sorted(parameters))
    return f"{bench}/{pairs}"


DEFAULTS = "defaults"  # what a case's label is where all its parameters are the defaults


def short_case(bench: str, label: str) -> str:
    """Name a case by what differs from the defaults, as `hil run --suite` reads it: ``publish/qos=2``."""
    return f"{bench}/{label}"


def bench_of(case_id: str) -> str:
    """Return the bench of a case by its name."""
    return case_id.partition("/")[0]


def parameters_in(case_id: str) -> dict[str, str]:
    """Return the parameters that a case's name gives, as they are written there."""
    pairs = (pair.partition("=") for pair in case_id.partition("/")[2].split(",") if pair)
    return {name: value for name, _, value in pairs}


def format_place(product: str, rack: str) -> str:
    """Name whose figures these are, and where measured: ``product:rack``, or ``rack`` of no product."""
    return f"{product}:{rack}" if product else rack


def format_product(product: str) -> str:
    """Return what sentences call a product: ``product sensor-node``, or that there is none."""
    return f"product {product}" if product else "no product by name"


def format_series_id(rack: str, board: str, case_id: str, metric: str, product: str = "") -> str:
    """Name a series: ``rack/board/case_id/metric``, of a product ``product:rack/board/case_id/metric``."""
    return f"{format_place(product, rack)}/{board}/{case_id}/{metric}"


class SeriesId(NamedTuple):
    """What format_series_id() was made of; ``board`` is the target where a series is of all its boards."""

    rack: str
    board: str
    case_id: str
    metric: str
    product: str = ""

    @classmethod
    def parse(cls, series_id: str) -> SeriesId:
        """Take apart what format_series_id() made."""
        place, board, rest = series_id.split("/", 2)
        case_id, _, metric = rest.rpartition("/")
        product, _, rack = place.rpartition(":")
        return cls(rack, board, case_id, metric, product)

    @property
    def bench(self) -> str:
        return bench_of(self.case_id)


@dataclass(frozen=True)
class Case:
    """One parameter set of one bench, defaults included; no board, port, commit or rack in it."""

    bench: str
    parameters: Mapping[str, Scalar]

    @property
    def case_id(self) -> str:
        return format_case_id(self.bench, self.parameters)


@dataclass(frozen=True)
class Series:
    """The samples of one case from one boot, as the board sent them.

    ``columns`` maps a column name (unit in the name, e.g. ``planned_us``) to one integer a row; all
    columns have the same length. The first ``warmup_rows`` rows are the cold ones. ``measured_s`` is how long
    the host waited for them, all bursts together: from asking to the first line, without transferring them.
    ``stretches`` are the beginning and the end of each of these times, by the session's clock.
    """

    case: Case
    columns: Mapping[str, tuple[int, ...]]
    warmup_rows: int
    clock: str
    firmware_sha256: str
    ruler_hash: str
    protocol_version: int
    device: Mapping[str, Scalar] = field(default_factory=dict)
    measured_s: float = 0.0
    stretches: tuple[tuple[float, float], ...] = ()

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class RunRecord:
    """One (run, board, boot, case): samples and the environment they were taken in.

    ``measured_s`` is its series'; None where nobody timed it, and then not written.
    ``product`` is whose figures these are (hil.base.project); "" is not written.
    """

    run_id: str
    rack: str
    board: str
    target: str
    kind: Kind
    role: Role
    boot_index: int
    bench: str
    parameters: Mapping[str, Scalar]
    firmware_sha256: str
    ruler_hash: str
    protocol_version: int
    clock: str
    started_utc: str
    warmup_rows: int
    columns: Mapping[str, tuple[Sample, ...]]
    environment: Mapping[str, Mapping[str, Scalar]]
    measured_s: Span | None = None
    product: Product = ""
    schema: int = SCHEMA_VERSION

    @property
    def case_id(self) -> str:
        return format_case_id(self.bench, self.parameters)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def measured_rows(self) -> int:
        """The rows that count: those after the warm-up."""
        return max(0, self.rows - self.warmup_rows)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this record, ``case_id`` included for readers of the file."""
        values = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        values["parameters"] = dict(self.parameters)
        values["columns"] = {name: list(column) for name, column in self.columns.items()}
        values["environment"] = {group: dict(facts) for group, facts in self.environment.items()}
        if self.measured_s is None:
            del values["measured_s"]
        return {"type": "record", "case_id": self.case_id, **_without_empty_product(values)}


@dataclass(frozen=True)
class Fault:
    """Something went wrong; ``owner`` says whose it is (see hil.base.errors)."""

    run_id: str
    owner: str
    exit_code: int
    sentence: str
    board: str = ""
    case_id: str = ""
    schema: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        return {"type": "fault", **dataclasses.asdict(self)}


# Why a case was not measured, or not any further: the board or the run failed; the run ended before; pytest's
# -k left it out; the images are the same bytes; the board's limits, chip or quarantine rule it out; the time
# budget ended its comparison; the firmware that it is compared with has no boot of it; another board took it
# over in a run that spreads its cases.
Cause = Literal[
    "failed", "ended", "deselected", "identical", "ruled-out", "cut-off", "not-compared", "handed-over"
]
_EXPECTED = frozenset[Cause]({"failed", "ended", "deselected"})


@dataclass(frozen=True)
class NotRun:
    """A planned case that was not measured, and why: in a sentence for people, by its cause for programs.

    ``to`` is the board that a case was handed over to, "" where it was not.
    """

    run_id: str
    board: str
    case_id: str
    reason: str
    cause: Cause = "failed"
    to: str = ""
    schema: int = SCHEMA_VERSION

    @property
    def expected(self) -> bool:
        """Whether it should have been measured: then the run is not complete without it."""
        return self.cause in _EXPECTED

    def to_json(self) -> dict[str, Any]:
        return {"type": "not-run", **self.values()}

    def values(self) -> dict[str, Any]:
        """Return the JSON object of it, wherever it stands."""
        told = {key: value for key, value in dataclasses.asdict(self).items() if key != "to" or value}
        return {**told, "expected": self.expected}


@dataclass(frozen=True)
class Comparison:
    """What a run compares on the boards of one image; all of a run's are written before its first boot.

    ``role`` is what the candidate is set beside. It is judged after each of ``looks``; ``order`` of a boot
    within the run is its ``boot_index``. ``boot_s`` is how long one more boot of every board takes by the
    plan, in seconds; None where the looks were not planned by time, and then not written.
    ``cases`` are the ids of the cases that it compares. Where ``identical`` both are the same bytes: nothing
    is measured, and the comparison is passed. ``product`` is that of its records.
    """

    run_id: str
    rack: str
    image: str
    target: str
    boards: tuple[Name, ...]
    role: Role
    candidate_sha256: str
    other_sha256: str
    looks: Looks
    identical: bool = False
    cases: tuple[Name, ...] = ()
    product: Product = ""
    boot_s: Span | None = None
    schema: int = SCHEMA_VERSION

    @property
    def board(self) -> str:
        """None in particular: an entry of several boards."""
        return ""

    @property
    def case_id(self) -> str:
        """None in particular: an entry of all cases."""
        return ""

    def to_json(self) -> dict[str, Any]:
        values = _without_empty_product(dataclasses.asdict(self))
        if self.boot_s is None:
            del values["boot_s"]
        return {"type": "comparison", **values}


def _without_empty_product(values: dict[str, Any]) -> dict[str, Any]:
    """Return an entry's values, without the product where it has none."""
    return {key: value for key, value in values.items() if key != "product" or value}


# Why there is no base where one was to be compared with: its own sources do not build, or something else.
BaseCause = Literal["sources", "identical", "unknown"]


@dataclass(frozen=True)
class NoBase:
    """What a run was to be compared with is missing; written before its first boot."""

    run_id: str
    cause: BaseCause
    reason: str
    schema: int = SCHEMA_VERSION

    @property
    def board(self) -> str:
        """None in particular: an entry of all boards."""
        return ""

    @property
    def case_id(self) -> str:
        """None in particular: an entry of all cases."""
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"type": "no-base", **dataclasses.asdict(self)}


Rung = Literal["reset", "power cycle", "hub cycle", "erase and re-flash", "base image"]


@dataclass(frozen=True)
class Recovery:
    """A board stopped answering in a run, and what was done about it.

    ``tried`` are the rungs in their order, ``by`` the one that brought it back, "" where none did. ``took_s``
    is from the moment at which it was given up to its answer, or to the end of the last rung. ``during`` is
    the id of the case that was measured, "" where it was flashed or booted; ``cause`` is the fault.
    """

    run_id: str
    board: str
    cause: str
    tried: tuple[Rung, ...]
    by: Rung | Literal[""]
    took_s: Span
    during: str = ""
    schema: int = SCHEMA_VERSION

    @property
    def case_id(self) -> str:
        """None in particular: no case was measured by it."""
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"type": "recovery", **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Ruler:
    """The ruler (hil.boards.firmware.ruler) that was asked for, and the ruler that was used.

    ``moved`` names the components that differ from the product's own and took their place. ``reason`` says
    why the product kept its own, "" where it has those of ``commit``.
    """

    commit: str
    dirty: bool
    moved: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Quarantine:
    """Why a board takes part in no run until somebody releases it."""

    board: str
    since_utc: str
    who: str
    why: str


Entry = RunRecord | Fault | NotRun | Comparison | NoBase | Recovery

Outcome = Literal["regressed", "improved", "pass", "undecided", "no-baseline"]
# of a run; "incomplete" where not all that was planned was measured, or a fault ended it
RunOutcome = Literal["regressed", "incomplete", "undecided", "no-baseline", "improved", "pass"]
OnUndecided = Literal["neutral", "fail"]


@dataclass(frozen=True)
class SeriesVerdict:
    """What the gate says of one series, in numbers and in the sentence that a person reads.

    ``value``, ``low`` and ``high`` (the interval), ``limit`` and ``smallest_excess`` are in ``unit``; None
    where there is none. ``at_least`` says that the value is only known to be that large, because it fell
    among timeouts. ``cause`` is ``limit`` where an absolute limit decided, ``impossible`` where no
    firmware can measure such a value, ``hardly-heard`` where only boots at the edge of their radio broke the
    limit. ``case_label`` names the
    parameters that differ from their defaults. ``smallest_excess`` is how far beyond the limit the value
    would have had to lie to be seen as breaking it. ``note`` is ``marginal`` where the value lies beyond
    the limit but its interval does not. ``reason`` is why a metric is advice, suppressed or undecided.
    ``clock`` is what its times were taken by, "" where it is no time. ``void`` counts the rows that are in no
    figure because the host under the board was late, at worst by ``host_late_us``.
    """

    series_id: str
    board: str
    kind: Kind
    target: str
    case_id: str
    metric: str
    unit: str
    outcome: Outcome
    blocking: bool
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    limit_source: str = ""
    cause: str = ""
    samples: int = 0
    boots: int = 0
    failed: int = 0
    case_label: str = ""
    direction: Literal["lower", "higher"] = "lower"
    limit_why: str = ""
    at_least: bool = False
    smallest_excess: float | None = None
    note: str = ""
    reason: str = ""
    clock: str = ""
    void: int = 0
    host_late_us: int = 0


@dataclass(frozen=True)
class BoardEffect:
    """What one board says of a comparison; changes as in ComparedSeries, ``note`` why it does not count.

    ``left_out`` says which of its boots do not count, and why.
    """

    board: str
    candidate_boots: int
    other_boots: int
    change: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    left_out: str = ""


@dataclass(frozen=True)
class ComparedSeries:
    """What the gate says of one metric of one case against the other, over the boards of a target.

    ``change``, ``low`` and ``high`` (the repeated confidence interval), ``tolerance``, ``min_effect`` and
    ``smallest_effect`` are relative (0.1 is ten per cent) where ``relative``, else in ``unit``; positive is
    always "the figure grew". ``z`` is set against ``boundary`` at ``look`` of ``looks``; ``early`` says that
    it was decided before the last one, so that the change is biased away from zero. ``boot_deviation`` is a
    standard deviation on the same scale; ``smallest_effect`` is what these boots would have seen in four of
    five cases; ``pass_bound`` is the largest change for the worse that the test of a pass leaves, closer than
    the interval where it passed early. ``checks`` are what was asked of the environment and came
    out well, ``reason`` why there is no decision or why it does not block.
    """

    series_id: str
    rack: str
    target: str
    kind: Kind
    boards: tuple[str, ...]
    role: Role
    case_id: str
    case_label: str
    metric: str
    unit: str
    direction: Literal["lower", "higher"]
    outcome: Outcome
    blocking: bool
    sentence: str
    relative: bool = True
    candidate_value: float | None = None
    other_value: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    z: float | None = None
    boundary: float | None = None
    look: int = 0
    looks: int = 0
    early: bool = False
    candidate_boots: int = 0
    other_boots: int = 0
    boot_deviation: float | None = None
    tolerance: float | None = None
    min_effect: float | None = None
    smallest_effect: float | None = None
    checks: tuple[str, ...] = ()
    reason: str = ""
    effects: tuple[BoardEffect, ...] = ()
    clock: str = ""
    pass_bound: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a run: one per series, the faults, what was not run, and the exit code.

    ``compared`` are the comparisons with the base or the reference. ``warnings`` are what a person should
    know although it does not change the exit code. ``on_undecided`` is what CI makes of an undecided outcome:
    ``fail`` where the policy of an undecided bench says so. ``no_base`` is why there was nothing to compare
    with where there should have been, "" elsewhere.
    """

    run_id: str
    outcome: RunOutcome
    exit_code: int
    sentence: str
    series: tuple[SeriesVerdict, ...]
    faults: tuple[Fault, ...]
    not_run: tuple[NotRun, ...]
    warnings: tuple[str, ...] = ()
    compared: tuple[ComparedSeries, ...] = ()
    on_undecided: OnUndecided = "neutral"
    no_base: Literal["", "sources", "identical", "unknown"] = ""
    schema: int = SCHEMA_VERSION

    @property
    def is_neutral(self) -> bool:
        """Whether it is undecided, and no policy makes that a failure."""
        return self.outcome == "undecided" and self.on_undecided == "neutral"

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "not_run": [item.values() for item in self.not_run]}
