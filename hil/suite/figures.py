# SPDX-License-Identifier: Apache-2.0
"""What a session's tests measured, by board, test and metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.units import convert
from hil.model import LARGEST
from hil.suite.facts import BoardFact, SuiteSession, SuiteValue
from hil.suite.naming import Naming, bench_of_test, column_unit, label_of_test, named

_LOST = 1e-3  # of a value: more than that does not go by rounding


@dataclass(frozen=True)
class SuiteMetric:
    """The values of a metric in a test on a board, in its column's unit; ``limit`` is in the metric's."""

    board: BoardFact
    node: str
    naming: Naming
    values: tuple[int, ...]
    direction: Literal["lower", "higher"]
    limit: float | None
    at_utc: str

    @property
    def name(self) -> str:
        return self.naming.name

    @property
    def bench(self) -> str:
        return bench_of_test(self.node)

    @property
    def test(self) -> str:
        return label_of_test(self.node)


def figures_of(session: SuiteSession) -> list[SuiteMetric]:
    """Return the figures of the tests that passed.

    Raises ConfigError: a unit that is none, contradicting calls of a metric, two tests of one name.
    """
    passed = {test.test for test in session.tests if test.outcome == "passed"}
    found: dict[tuple[str, str, str], SuiteMetric] = {}
    for value in session.values:
        if value.fact.test in passed:
            figure = _figure(value)
            key = (figure.board.board, figure.node, figure.name)
            found[key] = _together(found[key], figure) if key in found else figure
    _check_names(found.values())
    return list(found.values())


def _figure(value: SuiteValue) -> SuiteMetric:
    fact = value.fact
    naming = named(fact.name, fact.unit, fact.test)
    direction = fact.direction or ("higher" if naming.higher_is_better else "lower")
    return SuiteMetric(
        value.board, fact.test, naming, (_whole(value, naming),), direction, fact.limit, fact.at_utc
    )


def _whole(value: SuiteValue, naming: Naming) -> int:
    """Return a value in its column's unit. Raises ConfigError where that cannot hold it."""
    amount = convert(value.fact.value, naming.unit, column_unit(naming.unit))
    whole = round(amount)
    if abs(whole) > LARGEST or abs(whole - amount) > _LOST * abs(amount):
        raise ConfigError(
            f"{value.fact.test}: {naming.name} is {value.fact.value:g}, which is too "
            f"{'large' if abs(whole) > LARGEST else 'small'} to be kept in {naming.unit.name}.",
            next_step="give the value in a unit in which it is closer to 1.",
        )
    return whole


def _together(first: SuiteMetric, second: SuiteMetric) -> SuiteMetric:
    limits = {limit for limit in (first.limit, second.limit) if limit is not None}
    if len(limits) > 1 or first.direction != second.direction:
        raise ConfigError(
            f"{first.node}: the calls of {first.name} say different limits or directions.",
            next_step="say the same in each, or give the second metric another name.",
        )
    return replace(first, values=first.values + second.values, limit=next(iter(limits), None))


def _check_names(figures: Iterable[SuiteMetric]) -> None:
    names: dict[tuple[str, str], str] = {}
    directions: dict[tuple[str, str], SuiteMetric] = {}
    for figure in figures:
        other = names.setdefault((figure.bench, figure.test), figure.node)
        if other != figure.node:
            raise ConfigError(
                f"{other} and {figure.node} have one name here, {figure.bench}/test={figure.test}.",
                next_step="rename one of the files or tests.",
            )
        first = directions.setdefault((figure.bench, figure.name), figure)
        if first.direction != figure.direction:
            raise ConfigError(
                f"{figure.name}: better is {first.direction} in {first.node}, not in {figure.node}.",
                next_step="say the same in both, or give one another name.",
            )


def by_bench(figures: Sequence[SuiteMetric]) -> dict[str, list[SuiteMetric]]:
    """Return the figures of each bench, in the session's order."""
    found: dict[str, list[SuiteMetric]] = {}
    for figure in figures:
        found.setdefault(figure.bench, []).append(figure)
    return found


def is_ragged(figures: Sequence[SuiteMetric]) -> bool:
    """Say whether in some test of a bench one metric has more values than another."""
    counts: dict[tuple[str, str], set[int]] = {}
    for figure in figures:
        counts.setdefault((figure.board.board, figure.node), set()).add(len(figure.values))
    return any(len(own) > 1 for own in counts.values())


def row_column(figure: SuiteMetric) -> str:
    """Return the column that is 1 in a metric's rows, where the metrics of a test differ in their number."""
    return f"{figure.name}_row_count"
