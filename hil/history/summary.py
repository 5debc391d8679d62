# SPDX-License-Identifier: Apache-2.0
"""What the history keeps of one run: figures, health, judgements and boot values, in one JSON file.

docs/operate/history.md says what each key holds. The same run gives the same bytes.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hil.model import IMPORTED, Kind, Outcome, PastKind, Product, Quarantine, RunOutcome, Scalar, bench_of

SCHEMA_VERSION: Literal[1] = 1
ROLES = ("candidate", "reference")
Role = Literal["candidate", "reference"]
BoardState = Literal["measured", "faulted", "not-run", "quarantined"]
Judged = Literal["pass", "improved", "regressed", "undecided"]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # NumPy keeps 64 bits


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is in the file; a key that holds what is usual is left out."""


class StoredFigure(_Stored, frozen=True):
    """What a run said of a metric: value and limit in the unit that the metric's name ends with.

    ``blocking`` is there where there is a limit. ``at_least``: the value fell among timeouts.
    """

    value: float | None
    outcome: Outcome
    limit: float | None = None
    blocking: bool | None = None
    direction: Literal["lower", "higher"] = "lower"
    at_least: bool = False


class CaseFigures(_Stored, frozen=True):
    """The figures of one case on one board."""

    board: str
    kind: Kind
    target: str
    case_id: str
    label: str
    metrics: Mapping[str, StoredFigure]


class BoardInRun(_Stored, frozen=True):
    """A board's part in one run. ``faults`` counts by owner; ``first_fault`` is the first one's sentence, the
    rig's before others'.

    ``quarantine`` is there where the state says so. ``is_lost``: the board did not answer, and nothing
    brought it back.
    """

    board: str
    kind: Kind
    target: str
    state: BoardState
    faults: Mapping[str, int] = {}
    first_fault: str = ""
    quarantine: Quarantine | None = None
    is_lost: bool = False


class Health(_Stored, frozen=True):
    """What a run says of its rack; ``faults`` and ``first_fault`` are of no board in particular."""

    boards: tuple[BoardInRun, ...] = ()
    faults: Mapping[str, int] = {}
    first_fault: str = ""


class Judgement(_Stored, frozen=True):
    """One blocking comparison of a metric of a case on a target's boards, of a firmware with itself.

    ``smallest_effect`` is the smallest change that it would have seen: relative where ``relative``, else in
    the metric's unit; None where that cannot be said. ``boots`` are those of both sides and all boards.
    """

    target: str
    kind: Kind
    case_id: str
    metric: str
    outcome: Judged
    boots: int
    smallest_effect: float | None
    relative: bool


class Unchanged(_Stored, frozen=True):
    """How the gate judged unchanged firmware. ``noise`` is the profile that was simulated, "" where none was.

    ``gate`` numbers the rules by which it was judged, ``alpha`` is the share of such runs that these allow
    themselves to block.
    """

    gate: int
    alpha: Annotated[float, Meta(gt=0, lt=1)]
    judgements: Annotated[tuple[Judgement, ...], Meta(min_length=1)]
    noise: str = ""


class MeasuredBoard(_Stored, frozen=True):
    """``conditions`` are what its values hang on; what changed during the run holds all of it: "6 | 11"."""

    id: str
    target: str
    kind: PastKind
    conditions: Mapping[str, Scalar]


class BootedImage(_Stored, frozen=True):
    """What booted in a role. ``rulers`` maps a bench to the hash of the sources that measure."""

    role: Role
    name: str
    sha256: str
    rulers: Mapping[str, str]


class Boots(_Stored, frozen=True):
    """Columns, one element a boot. ``board`` and ``image`` are positions in those of the boot values.

    ``index`` is a boot's position in the run on its board.
    """

    board: tuple[int, ...]
    index: tuple[int, ...]
    image: tuple[int, ...]


class SeriesColumns(_Stored, frozen=True):
    """Columns, one element a metric of a case on a set of boots, as positions in those of the boot values."""

    case: tuple[int, ...]
    metric: tuple[int, ...]
    boots: tuple[int, ...]


class BootValues(_Stored, frozen=True):
    """One value a boot, case and metric: row after row of ``series``, a value for each boot of the row's set.

    None is beyond the timeout. ``samples`` and ``hits`` are run lengths: value, times, value, times, …
    """

    boards: tuple[MeasuredBoard, ...]
    images: tuple[BootedImage, ...]
    boots: Boots
    cases: tuple[str, ...]
    metrics: tuple[str, ...]
    boot_sets: tuple[tuple[int, ...], ...]
    series: SeriesColumns
    values: tuple[int | float | None, ...]
    samples: tuple[Count, ...]
    hits: tuple[Count, ...]

    def __len__(self) -> int:
        return len(self.values)


class Summary(_Stored, frozen=True, kw_only=True):
    """A run. ``outcome`` and ``exit_code`` are the verdict's; imported figures have none.

    ``unchanged`` and ``boot_values`` are there as far as the run has them.
    """

    schema: Literal[1]
    run_id: str
    started_utc: str
    rack: str
    suite: str
    trigger: str
    commit: str
    dirty: bool
    product: Product = ""
    title: str = ""
    author: str = ""
    profile: str = ""
    url: str = ""
    outcome: RunOutcome | Literal[""] = ""
    exit_code: int = 0
    health: Health = Health()
    unchanged: Unchanged | None = None
    cases: tuple[CaseFigures, ...] = ()
    boot_values: BootValues | None = None

    @property
    def started(self) -> datetime.datetime:
        """When it began. Raises ValueError where ``started_utc`` is no moment."""
        moment = datetime.datetime.fromisoformat(self.started_utc)
        return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def to_bytes(run: Summary) -> bytes:
    """Return the file's content: the same run gives the same bytes."""
    return msgspec.json.encode(run, order="deterministic") + b"\n"


def problems_of(run: Summary) -> Iterator[str]:
    """Yield what contradicts itself in a run whose keys and types are right."""
    try:
        _ = run.started
    except ValueError:
        yield f"started_utc is {run.started_utc!r}, no date"
    if run.boot_values is None:
        return
    said = {run.rack == IMPORTED, run.trigger == IMPORTED}
    if len(said | {board.kind == IMPORTED for board in run.boot_values.boards}) > 1:
        yield f"rack, trigger and kinds of its boards are not all {IMPORTED!r}, or none of them"
    pointing = list(_wrong_positions(run.boot_values))
    yield from pointing or _wrong_counts(run.boot_values)


def _wrong_positions(held: BootValues) -> Iterator[str]:
    boots, series = held.boots, held.series
    for name, columns in (("boots", (boots.board, boots.index, boots.image)), ("series", _columns(series))):
        if len(set(map(len, columns))) > 1:
            yield f"the columns of {name} differ in length"
    for key, column, bound in (
        ("boots.board", boots.board, len(held.boards)),
        ("boots.image", boots.image, len(held.images)),
        ("boot_sets", tuple(itertools.chain.from_iterable(held.boot_sets)), len(boots.index)),
        ("series.case", series.case, len(held.cases)),
        ("series.metric", series.metric, len(held.metrics)),
        ("series.boots", series.boots, len(held.boot_sets)),
    ):
        if column and not (min(column) >= 0 and max(column) < bound):
            yield f"{key} points at {min(column)} to {max(column)}, of {bound}"


def _wrong_counts(held: BootValues) -> Iterator[str]:
    count, wanted = len(held), sum(len(held.boot_sets[boots]) for boots in held.series.boots)
    if wanted != count:
        yield f"its series have {wanted} boots, but values holds {count}"
    for key, lengths in (("samples", held.samples), ("hits", held.hits)):
        times = lengths[1::2]
        if len(lengths) % 2 or min(times, default=1) < 1 or sum(times) != count:
            yield f"{key} is not one number for each of the {count} values, as runs (value, times)"
    for name in ("cases", "metrics"):
        if len(set(texts := getattr(held, name))) != len(texts):
            yield f"{name} are not all different"
    for case, boots in set(zip(held.series.case, held.series.boots, strict=True)):
        bench = bench_of(held.cases[case])
        for image in {held.boots.image[boot] for boot in held.boot_sets[boots]}:
            if bench not in held.images[image].rulers:
                yield f"image {held.images[image].name!r} lacks the ruler of {bench}"


def _columns(series: SeriesColumns) -> tuple[Sequence[int], ...]:
    return series.case, series.metric, series.boots
