# SPDX-License-Identifier: Apache-2.0
"""Stretches of time that were taken on three clocks: the raw cycle counter, the corrected one, esp_timer.

A core's counter is its own, so a difference that began on one core and ended on the other holds the offset of
the counters, modulo 2^32 cycles. The firmware measures the offset in each run by a handshake of the cores and
tells it with its error (firmware/components/rtos/include/rtos/clocks.h).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hil.metrics.stats import mean
from hil.model import RunRecord
from hil.reports.studies.comparison import corrected_text, row_notes, table_notes
from hil.reports.studies.declaration import Comparison, Published, Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Line, Picture, Table
from hil.reports.studies.estimate import Estimate, estimate, median
from hil.reports.studies.layout import Figures, published_table
from hil.reports.studies.records import BoardRun, fact, whole

TURN_CYCLES = 1 << 32
OK, VOID = 0, 2
BY_CONSTRUCTION = "by construction: tests the analyser"
_MAX_VOID_RATIO = 0.2  # what the gate bears too, unless a thresholds file says otherwise
_ESP_TIMER_US = 2  # cut to 1 us: the difference of two readings, and what the stamps were measured to take

# bench → columns of a stretch by the raw counter (cycles), the corrected one (ns) and esp_timer (us)
_COLUMNS: Mapping[str, tuple[str, str, str]] = {
    "task_switch": ("raw_cycles", "corrected_ns", "common_us"),
    "jitter": ("interval_raw_cycles", "interval_corrected_ns", "interval_us"),
}


@dataclass(frozen=True)
class Counter:
    """The counters of a boot's cores: ``offset_cycles`` is core 1's less core 0's, known to ``error_cycles``.

    ``stamp_us`` is what lies between the readings of the two clocks at the ends of a stretch.
    """

    mhz: float
    offset_cycles: int
    error_cycles: int
    stamp_us: float

    @property
    def turn_us(self) -> float:
        """How long the counter takes to come back to where it was."""
        return TURN_CYCLES / self.mhz

    @property
    def offset_us(self) -> float:
        return self.offset_cycles / self.mhz

    @property
    def error_us(self) -> float:
        return self.error_cycles / self.mhz

    @property
    def tolerance_us(self) -> float:
        """How far a corrected difference and esp_timer's may lie apart."""
        return self.error_us + self.stamp_us + _ESP_TIMER_US


@dataclass(frozen=True)
class Stretch:
    """One sample. ``late_us`` is how late a periodic task woke, on the grid that was planned; else None."""

    boot: int
    counter: Counter
    raw_cycles: int
    corrected_us: float
    common_us: float
    start_core: int
    end_core: int
    done: bool
    late_us: float | None = None

    @property
    def moved(self) -> bool:
        """Whether it ended on another core than it began on."""
        return self.start_core != self.end_core

    @property
    def shift_cycles(self) -> int:
        """What the offset of the counters adds to the raw difference, before it wraps."""
        return (self.end_core - self.start_core) * self.counter.offset_cycles

    @property
    def raw_us(self) -> float:
        """The raw difference without sign, as the study's table has it."""
        return self.raw_cycles / self.counter.mhz

    @property
    def signed_us(self) -> float:
        """The raw difference with a sign, as the study's published source has it."""
        return signed(self.raw_cycles) / self.counter.mhz

    @property
    def unshifted_us(self) -> float:
        """The raw difference less the offset."""
        return signed(self.raw_cycles - self.shift_cycles) / self.counter.mhz

    @property
    def agrees(self) -> bool:
        """Whether that is what esp_timer shows, within what both are known to."""
        return abs(self.unshifted_us - self.common_us) <= self.counter.tolerance_us


def signed(cycles: int) -> int:
    """Return a difference modulo 2^32 as one from -2^31 to 2^31 - 1."""
    return (cycles + TURN_CYCLES // 2) % TURN_CYCLES - TURN_CYCLES // 2


@dataclass(frozen=True)
class Measured:
    """The stretches of some records without the void ones, which are counted.

    Where too many are void there are no stretches: what is left is not what was to be measured. ``why`` says
    so then, and is "" otherwise.
    """

    stretches: tuple[Stretch, ...]
    void: int
    why: str = ""

    @property
    def done(self) -> tuple[Stretch, ...]:
        return tuple(one for one in self.stretches if one.done)

    @property
    def moved(self) -> tuple[Stretch, ...]:
        return tuple(one for one in self.done if one.moved)

    @property
    def first_boot(self) -> tuple[Stretch, ...]:
        """What was done in the first boot: a study that has one boot has nothing else."""
        done = self.done
        return tuple(one for one in done if one.boot == done[0].boot)

    @property
    def boots(self) -> int:
        return len({one.boot for one in self.stretches})

    @property
    def agreeing(self) -> int:
        """How many of the moved ones esp_timer confirms once the offset is taken off."""
        return sum(one.agrees for one in self.moved)


def measured(run: BoardRun, ours: Comparison | None) -> Measured:
    """Return what the run has of a comparison."""
    return stretches_of(run.select(ours)) if ours else Measured((), 0)


def stretches_of(records: Iterable[RunRecord]) -> Measured:
    """Return the measured rows of the records that tell how their counters were calibrated."""
    found: list[Stretch] = []
    void = 0
    for record in records:
        counter = counter_of(record)
        rows = range(record.warmup_rows, record.rows) if counter else ()
        outcomes = record.columns.get("outcome", ())
        for row in rows:
            void += outcomes[row] == VOID
            if counter and outcomes[row] != VOID:
                found.append(_stretch(record, counter, row, done=outcomes[row] == OK))
    of = len(found) + void
    if void > _MAX_VOID_RATIO * of:
        why = f"{void:,} of {of:,} samples are void, for the host's scheduling was late"
        return Measured((), void, why)
    return Measured(tuple(found), void)


def _stretch(record: RunRecord, counter: Counter, row: int, *, done: bool) -> Stretch:
    columns = record.columns
    raw, corrected, common = (columns[name][row] for name in _COLUMNS[record.bench])
    periodic = {"planned_us", "woke_us"} <= set(columns)
    return Stretch(
        boot=record.boot_index,
        counter=counter,
        raw_cycles=raw,
        corrected_us=corrected / 1000 if done else math.inf,
        common_us=float(common) if done else math.inf,
        start_core=columns["start_core"][row],
        end_core=columns["end_core"][row],
        done=done,
        late_us=float(columns["woke_us"][row] - columns["planned_us"][row]) if periodic else None,
    )


def counter_of(record: RunRecord) -> Counter | None:
    """Return how the cores' counters stand in a record's boot; None where it does not tell."""
    names = ("cpu_mhz", "core1_offset_cycles", "core1_offset_error_cycles", "clock_stamp_us")
    mhz, offset, error, stamp = (fact(record, "device", name) for name in names)
    if not mhz or offset is None or error is None:
        return None
    return Counter(mhz, int(offset), int(error), stamp or 0.0)


def is_planted(run: BoardRun, stretches: Sequence[Stretch]) -> bool:
    """Return whether the offset in the raw differences is artificial: virtual counters are simulated."""
    return run.kind == "virtual" and any(one.moved for one in stretches)


def raw_name(run: BoardRun, stretches: Sequence[Stretch]) -> str:
    """Return the name of what the raw counter shows, marked where its artefact is planted."""
    return f"raw counter ({BY_CONSTRUCTION})" if is_planted(run, stretches) else "raw counter"


Way = Callable[[Stretch], float]
WAYS: Mapping[str, Way] = {
    "raw": lambda one: one.raw_us,
    "signed": lambda one: one.signed_us,
    "corrected": lambda one: one.corrected_us,
    "esp_timer": lambda one: one.common_us,
}
_HEADS = {"corrected": "corrected_counter"}  # "corrected" is the published value that is right
_STEPS = 600  # of a picture's width: closer together than a screen shows


def standard_error(values: Sequence[float]) -> float:
    """Return sqrt(S / (N (N - 1))), which the study calls variance; 0 of fewer than two values."""
    count = len(values)
    if count < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (count * (count - 1)))


STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": mean,
    "standard-error": standard_error,
    "min": min,
    "max": max,
}


def raw_table(table_id: str, study: Study, run: BoardRun) -> Table:
    """Return the study's rows: published, corrected, ours by its estimator on each clock, in ms."""
    published = study.table(table_id)
    ours = measured(run, published.ours)
    sample = ours.first_boot if ours.done else ()
    planted = is_planted(run, sample)
    lines: list[Figures] = []
    notes = table_notes(published)
    for row in published.rows:
        found = {name: _theirs(row, sample, way) for name, way in WAYS.items()}
        head: Figures = {"label": row.label, "shown": decimals(row.published), "published": row.published}
        head |= {"right": _corrected(row), "corrected": row.corrected, "ours": found}
        cells = (
            {_HEADS.get(name, name): decimals(value) for name, value in found.items()}
            if sample
            else {"raw": NOT_MEASURED}
        )
        lines.append({**head, **cells, "n": len(sample), "by_construction": planted})
        notes += row_notes(row, run, measured=bool(sample or ours.why))
    notes.append(f"Not shown: {ours.why}." if ours.why else _way_note(sample, planted=planted))
    mark = ", by construction" if planted else ""
    return published_table(study, "raw", published, lines, notes, mark=mark)


def decimals(value: float | None) -> str:
    """Write ms as the study does, with three decimals."""
    return NONE if value is None else f"{value:,.3f}"


def _theirs(row: Row, sample: Sequence[Stretch], way: Way) -> float | None:
    values = [way(one) / 1000 for one in sample]
    return STATISTICS[row.statistic](values) if values else None


def _corrected(row: Row) -> str:
    return decimals(row.corrected) if row.corrected is not None else corrected_text(row)


def _way_note(sample: Sequence[Stretch], *, planted: bool) -> str:
    """Say how their way was computed, and that its column was planted where it was."""
    mark = (
        f" {BY_CONSTRUCTION.capitalize()}; the offset of the counters is the virtual board's own." * planted
    )
    return (
        f"their way: mean, standard error, least and largest of the {len(sample)} samples of the first boot, "
        "raw counter modulo 2^32 without sign, as 17 700 ms in the study's last table need; 'signed' as the "
        "published source has it. The last two columns are the same samples on the other clocks. A standard "
        f"error shrinks with the number of samples, of which the study has 1000.{mark}"
    )


def clock_table(table_id: str, study: Study, run: BoardRun) -> Table | None:
    """Return ours done right: the three clocks side by side, in µs; None where nothing was measured."""
    published = study.table(table_id)
    ours = measured(run, published.ours)
    if not ours.done:
        return None
    boots = [one.boot for one in ours.stretches]
    lines = []
    for key, name, values in _lines(ours, run, _period_us(published, run)):
        alike = key != "raw" or not ours.moved  # the offset differs from boot to boot
        middle = median(values, boots) if alike else estimate(values, 0.5)
        line: Figures = {
            "name": name,
            "clock": key,
            "unit": "us",
            "middle": middle.text if alike else middle.short,
        }
        line |= {
            "p50": middle,
            "p95": estimate(values, 0.95),
            "p99": estimate(values, 0.99),
            "max": max(values),
        }
        line |= {"most": Estimate(1, 1, max(values)), "n": len(boots), "boots": ours.boots, "void": ours.void}
        lines.append(line | {"by_construction": key == "raw" and is_planted(run, ours.done)})
    notes = ("void: the host under the board was late meanwhile; such samples are in no figure",)
    picture = _picture(ours, run)
    found = published_table(study, "clocks", published, lines, (), picture=picture)
    return replace(found, id=f"{table_id}-clocks", notes=notes if ours.void else ())


def _lines(ours: Measured, run: BoardRun, period_us: int) -> list[tuple[str, str, list[float]]]:
    """Return (key, name, values) of each clock; of a period also how far from it, and how late."""
    every = ours.stretches
    found = [
        ("raw", raw_name(run, ours.done), [one.raw_us if one.done else math.inf for one in every]),
        ("corrected", "corrected counter", [one.corrected_us for one in every]),
        ("esp_timer", "esp_timer", [one.common_us for one in every]),
    ]
    if period_us:
        off = [abs(one.common_us - period_us) for one in every]
        late = [one.late_us if one.done and one.late_us is not None else math.inf for one in every]
        found += [("deviation", "esp_timer, off the period", off), ("lateness", "late on the grid", late)]
    return found


def _period_us(published: Published, run: BoardRun) -> int:
    records = run.select(published.ours) if published.ours else ()
    return whole(records[0], "period_us") if records else 0


def _picture(ours: Measured, run: BoardRun) -> Picture | None:
    """Return the share of samples at or below a value, raw and corrected; None where the two are alike."""
    if not ours.moved:
        return None
    lines = (
        Line(raw_name(run, ours.done), "stat-tail5", shares([one.raw_us / 1000 for one in ours.done])),
        Line("corrected counter", "stat-p95", shares([one.corrected_us / 1000 for one in ours.done])),
    )
    return Picture("share of samples at or below, %", "ms", lines, stairs=True)


def shares(values: Sequence[float]) -> tuple[tuple[float, float, None, None], ...]:
    """Return the steps of the cumulative share in percent, those that a screen can tell apart."""
    ordered = sorted(values)
    step = (ordered[-1] / _STEPS) or 1.0
    found: dict[int, tuple[float, float, None, None]] = {}
    for rank, value in enumerate(ordered, start=1):
        first = found.get(int(value / step), (value,))[0]
        found[int(value / step)] = (first, 100 * rank / len(ordered), None, None)
    return tuple(found.values())
