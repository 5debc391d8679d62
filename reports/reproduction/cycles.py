"""Stretches of time that were taken on three clocks: the raw cycle counter, the corrected one, esp_timer.

A core's counter is its own, so a difference that began on one core and ended on the other holds the offset of
the counters, modulo 2^32 cycles. The firmware measures the offset in each run by a handshake of the cores and
tells it with its error (firmware/components/rtos/include/rtos/clocks.h).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reference import Comparison
from reports.reproduction.records import BoardRun, fact

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
    """Say whether the offset in the raw differences was put there: a virtual board's counters are made up."""
    return run.kind == "virtual" and any(one.moved for one in stretches)


def raw_name(run: BoardRun, stretches: Sequence[Stretch], name: str = "raw counter") -> str:
    """Return the name of what the raw counter shows, marked where its artefact is planted."""
    return f"{name} ({BY_CONSTRUCTION})" if is_planted(run, stretches) else name
