# SPDX-License-Identifier: Apache-2.0
"""What a metric is: which columns, which statistic, and for which cases."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hil.base.units import QuantityError, Unit, conversion, unit_of
from hil.model import RunRecord, Scalar

QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
STATISTICS = (*QUANTILES, "tail5", "mean", "batch_mean", "min", "max", "ratio", "share")
SCALES = ("log", "identity", "count", "exact")
DIRECTIONS = ("lower", "higher")
NOT_OK = ("infinite", "left-out")
# By what a time was taken: docs/explain/gate.md explains them.
CLOCKS = ("esp_timer", "cycle_counter", "cycle_counter_corrected", "gptimer", "host")

DEVICE = "device."  # what follows is no column, but what the board said of itself in the record's environment
CURRENT = "current"  # the group of a record's environment in which stands what a meter beside the board saw
METER = f"{CURRENT}."
_TERM = re.compile(rf"\s*([+-])\s*((?:{re.escape(DEVICE)}|{re.escape(METER)})[A-Za-z0-9_]+|[a-z][a-z0-9_]*)")


@dataclass(frozen=True)
class OutcomeRule:
    """Rows that succeeded: ``column`` equals ``ok``; others were given up after ``timeout_parameter``.

    It is "" where nothing can time out.

    Rows that hold ``void`` say nothing of the firmware, because the host under it was late: they count in no
    statistic. None where a bench has no such rows.
    """

    column: str
    ok: int
    timeout_parameter: str
    void: int | None = None


@dataclass(frozen=True)
class Term:
    """A column of the samples, or a figure of the record's environment, one value a boot: of the board
    (after DEVICE), or of the meter in its supply (after METER), which not every rack has."""

    sign: int
    column: str

    @property
    def is_of_device(self) -> bool:
        return self.column.startswith(DEVICE)

    @functools.cached_property
    def is_metered(self) -> bool:
        return self.column.startswith(METER)


@dataclass(frozen=True)
class Metric:
    """What to compute. ``source`` is file:line; ``unit`` is the one that ``name`` ends with.

    ``per`` is the column that a share is of; ``case`` are the parameters of the cases that the metric is for,
    each with the values that it may have, ``rows`` the values of columns of the rows that it is for.
    ``weight`` is the column that says how many samples a row stands for, "" where each is one. ``clocks`` are
    of CLOCKS, none where the file does not say by which a time was taken. ``compared`` says that a comparison
    with a base may block by it, ``blocking`` that a limit may too.
    """

    name: str
    terms: tuple[Term, ...]
    statistic: str
    scale: str
    direction: Literal["lower", "higher"]
    blocking: bool
    unit: Unit
    not_ok: str
    outcome: OutcomeRule | None
    source: str
    per: str = ""
    case: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    clocks: tuple[str, ...] = ()
    weight: str = ""
    compared: bool = False

    @property
    def averages(self) -> bool:
        """Whether a row that was not done enters the value with the timeout, which is the least it took."""
        return self.statistic in ("mean", "batch_mean", "tail5")

    @functools.cached_property
    def factor(self) -> tuple[int, int]:
        """What a sum of its columns is multiplied by, and divided by, to be in its unit."""
        return conversion(source_unit(self.terms), self.unit)

    @property
    def clock(self) -> str:
        """What took the time, in words: "esp_timer", "esp_timer and host"; "" where the file is silent."""
        return " and ".join(self.clocks)

    @property
    def exact(self) -> bool:
        """Whether a value is a fact, such as a size, and no sample of anything."""
        return self.scale == "exact"

    @functools.cached_property
    def is_metered(self) -> bool:
        """Whether a current meter's figures are needed: then boots without them have no value of it."""
        return any(term.is_metered for term in self.terms)

    def is_in(self, record: RunRecord) -> bool:
        """Whether a record has the meter's figures that the metric needs, if it needs any."""
        seen = record.environment.get(CURRENT, {})
        return all(term.column.removeprefix(METER) in seen for term in self.terms if term.is_metered)

    def applies_to(self, parameters: Mapping[str, Scalar]) -> bool:
        return all(parameters.get(key) in values for key, values in self.case.items())


def name_of(statistic: str) -> str:
    """Return how a metric's name spells a statistic: p99_9."""
    return statistic.replace(".", "_")


def metric_names(entry: str, statistic: str | Sequence[str]) -> dict[str, str]:
    """Return the statistics of an entry of ``metrics:`` by the names of their metrics.

    Of a list each is in its name, before the unit: ``latency_us`` with ``[p50, p99.9]`` is ``latency_p50_us``
    and ``latency_p99_9_us``. Raises QuantityError where the entry's name has no unit.
    """
    if isinstance(statistic, str):
        return {entry: statistic}
    unit = f"_{unit_of(entry).name}"
    return {f"{entry.removesuffix(unit)}_{name_of(word)}{unit}": word for word in statistic}


def parse_terms(text: str) -> tuple[Term, ...]:
    """Read ``done_us - planned_us``, or ``device.heap_min_bytes``. Raises ValueError."""
    rest = text.strip()
    rest = rest if rest.startswith(("+", "-")) else f"+{rest}"
    terms = []
    while rest:
        match = _TERM.match(rest)
        if match is None:
            raise ValueError(f"{text!r} is not a column, or columns joined by + and -")
        terms.append(Term(1 if match[1] == "+" else -1, match[2]))
        rest = rest[match.end() :].rstrip()
    return tuple(terms)


def source_unit(terms: Sequence[Term]) -> Unit:
    """Return the one unit of the columns. Raises QuantityError where they differ or have none."""
    units = {unit_of(term.column) for term in terms}
    if len(units) > 1:
        names = ", ".join(sorted(unit.name for unit in units))
        raise QuantityError(f"the columns have different units: {names}")
    return units.pop()


def _metered(name: str, figure: str) -> Metric:
    return Metric(
        name=name,
        terms=parse_terms(f"{METER}{figure}"),
        statistic="mean",
        scale="log",
        direction="lower",
        blocking=True,
        unit=unit_of(name),
        not_ok="infinite",
        outcome=None,
        source=__name__,
        compared=True,
    )


# What each bench has where a meter is in the board's supply; they block where a limit or a rule names them.
METERED = {
    metric.name: metric
    for metric in (
        _metered("energy_per_message_uj", "energy_per_message_nj"),
        _metered("mean_current_ua", "mean_current_na"),
        _metered("peak_current_ua", "peak_current_na"),
        _metered("sleep_current_ua", "sleep_current_na"),
    )
}
