# SPDX-License-Identifier: Apache-2.0
"""Read the metrics of a thresholds file: what each computes, from which columns, for which cases.

An entry with several statistics is a metric each, all else equal: with ``statistic: [p50, p95]``,
``latency_us`` is ``latency_p50_us`` and ``latency_p95_us``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, cast

from hil.base.units import QuantityError, Unit, convert, find_unit, unit_of
from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean
from hil.metrics.metric import (
    CLOCKS,
    DIRECTIONS,
    METERED,
    NOT_OK,
    SCALES,
    STATISTICS,
    Metric,
    OutcomeRule,
    Term,
    metric_names,
    parse_terms,
    source_unit,
)
from hil.model import Scalar
from hil.thresholds.rule_reader import check_value, require_parameter
from hil.thresholds.types import Parameter

_SHARES = ("ratio", "share")  # of what was tried
_EXACT = ("min", "max")
_COMPARED = "compared"


def read_outcome(node: Node | None, parameters: Collection[str]) -> OutcomeRule | None:
    """Read which rows were done, given up or void; None where a bench has none. Raises ConfigError."""
    if node is None:
        return None
    column, ok, timeout = node.text("column"), node.integer("ok"), node.text("timeout", default="")
    rule = OutcomeRule(column, ok, timeout, node.integer("void", default=None))
    if timeout and timeout not in parameters:
        raise node.error("timeout", f"unknown parameter {timeout!r}{did_you_mean(timeout, parameters)}")
    if rule.void == ok:
        raise node.error("void", f"a row whose {column} is {ok} is ok, so it cannot be void.")
    if timeout:
        read_unit(node, "timeout", timeout)
    return rule


def read_metrics(
    parts: Mapping[str, Node], outcome: OutcomeRule | None, parameters: Mapping[str, Parameter]
) -> dict[str, Metric]:
    """Read the metrics of a file by name, in its order, and a meter's behind them. Raises ConfigError."""
    metrics: dict[str, Metric] = {}
    for entry, node in parts.items():
        names = _read_names(entry, node)
        case, blocking = _read_cases(node, parameters), _read_blocking(node, names.values())
        for name, statistic in names.items():
            if name in metrics:
                raise node.error("", f"metric {name!r} exists already ({metrics[name].source}).")
            metrics[name] = _read_metric(name, statistic, node, outcome, case, blocking[statistic])
    return {**metrics, **{name: metric for name, metric in METERED.items() if name not in metrics}}


def _read_cases(node: Node, parameters: Mapping[str, Parameter]) -> dict[str, tuple[Scalar, ...]]:
    """Read the key ``case`` of a metric: parameters, each with the value or the values that are meant."""
    case = node.section("case", default=None)
    if case is None:
        return {}
    return {
        key: tuple(
            check_value(case, key, require_parameter(case, key, parameters), value)
            for value in case.scalar_or_scalars(key)
        )
        for key in case.keys
    }


def _read_names(entry: str, node: Node) -> dict[str, str]:
    """Return the statistics of an entry by the names of their metrics; of a list, each is in its name."""
    statistics = node.choice_or_choices("statistic", STATISTICS)
    read_unit(node, "", entry)
    if not isinstance(statistics, str):
        if not statistics or len(set(statistics)) < len(statistics):
            raise node.error("statistic", "a list of statistics names each statistic once.")
        if shares := [statistic for statistic in statistics if statistic in _SHARES]:
            raise node.error("statistic", f"a {shares[0]} must be the only statistic of its metric.")
    return metric_names(entry, statistics)


def _read_metric(
    name: str,
    statistic: str,
    node: Node,
    outcome: OutcomeRule | None,
    case: Mapping[str, tuple[Scalar, ...]],
    blocking: bool | str,
) -> Metric:
    unit = read_unit(node, "", name)
    of = node.text("of")
    outcome = _read_own_outcome(node, statistic, of, outcome)
    terms = _read_terms(node, name, of, statistic, unit)
    if statistic == "ratio" and (outcome is None or of != outcome.column):
        raise node.error(
            "of", "the statistic 'ratio' is the share of rows that are not ok: of 'outcome', or with 'ok'."
        )
    direction = node.choice("direction", DIRECTIONS)
    if statistic == "tail5" and direction == "higher":
        raise node.error("statistic", "tail5 is the slowest 5 %, so its direction is lower.")
    scale = node.choice("scale", SCALES, default="log")
    if scale == "exact" and statistic not in _EXACT:
        raise node.error("scale", f"an exact figure is not averaged: statistic {' or '.join(_EXACT)}.")
    not_ok = node.choice("not_ok", NOT_OK, default="infinite")
    if outcome and not outcome.timeout_parameter and unit.dimension == "time" and not_ok == "infinite":
        raise node.error(
            "", f"{name!r} counts rows that are not ok as the timeout, but 'outcome' has no timeout.",
            next_step="add 'timeout: …' to 'outcome', or 'not_ok: left-out' here where nothing can time out.",
        )  # fmt: skip
    return Metric(
        name=name,
        terms=terms,
        statistic=statistic,
        scale=scale,
        direction=cast(Literal["lower", "higher"], direction),
        blocking=blocking is True,
        unit=unit,
        not_ok=not_ok,
        outcome=outcome,
        source=node.where(),
        per=_read_per(node, statistic, terms),
        case=case,
        rows=_read_rows(node),
        clocks=_read_clocks(node, name, unit),
        weight=_read_weight(node, statistic),
        compared=bool(blocking),
    )


def _read_own_outcome(node: Node, statistic: str, of: str, outcome: OutcomeRule | None) -> OutcomeRule | None:
    """Read the value (key ``ok``) of the column that a ratio is of, where that is not the file's outcome."""
    ok = node.integer("ok", default=None)
    if ok is None or outcome is None:
        return outcome
    if statistic != "ratio":
        raise node.error("ok", "only a ratio has rows that are ok by a column of its own.")
    return OutcomeRule(of, ok, outcome.timeout_parameter, outcome.void if of == outcome.column else None)


def _read_blocking(node: Node, statistics: Collection[str]) -> dict[str, bool | str]:
    """Read of each statistic whether limits and comparisons may block by it, or comparisons alone.

    One word is for all of them; ``{p50: compared, p95: true}`` names those that may, and the rest may not.
    """
    key = "blocking"
    if not node.is_section(key):
        return dict.fromkeys(statistics, _blocking_of(node, key, node.scalar(key)))
    own = node.section(key)
    return {word: _blocking_of(own, word, own.scalar(word, default=False)) for word in statistics}


def _blocking_of(node: Node, key: str, value: Scalar) -> bool | str:
    if isinstance(value, bool) or value == _COMPARED:
        return value
    hint = did_you_mean(str(value), ("true", "false", _COMPARED))
    raise node.error(key, f"{key!r} is {value!r}; expected true, false or {_COMPARED}{hint}")


def _read_weight(node: Node, statistic: str) -> str:
    """Read the column that says how many samples a row stands for; "" where each is one."""
    weight = node.text("weight", default="")
    if weight and not weight.endswith("_count"):
        raise node.error("weight", f"{weight!r} is not a number of samples: it does not end in _count.")
    if weight and statistic == "share":
        raise node.error("weight", "a share divides sums of columns, which have no weight.")
    return weight


def _read_clocks(node: Node, name: str, unit: Unit) -> tuple[str, ...]:
    """Read by which clock a time was taken; by two where it is a difference of their differences."""
    clocks = tuple(map(str, node.scalar_or_scalars("clock", default=[])))
    for clock in clocks:
        if clock not in CLOCKS:
            hint = did_you_mean(clock, CLOCKS)
            raise node.error("clock", f"unknown clock {clock!r}{hint} Clocks: {', '.join(CLOCKS)}.")
    if clocks and unit.dimension != "time":
        raise node.error("clock", f"only a time has a clock, but {name!r} is in {unit.name}.")
    return clocks


def _read_rows(node: Node) -> dict[str, int]:
    """Read columns and the values that the rows of a metric have in them; {} where all rows count."""
    rows = node.section("rows", default=None)
    return {} if rows is None else {column: rows.integer(column) for column in rows.keys}


def read_unit(node: Node, key: str, name: str) -> Unit:
    """Return the unit that ``name`` ends with. Raises ConfigError at ``key``."""
    try:
        return unit_of(name)
    except QuantityError as error:
        raise node.error(key, f"{error}.") from None


def _read_terms(node: Node, name: str, of: str, statistic: str, unit: Unit) -> tuple[Term, ...]:
    try:
        terms = parse_terms(of)
        source = find_unit("ratio") if statistic in _SHARES else source_unit(terms)
        convert(1.0, source, unit)
    except (ValueError, QuantityError) as error:
        raise node.error("of", f"metric {name!r} cannot be computed from {of!r}: {error}.") from None
    if any(term.is_of_device for term in terms) and node.text("scale", default="log") != "exact":
        raise node.error("of", f"{of!r} has one value per boot, not samples: add 'scale: exact'.")
    return terms


def _read_per(node: Node, statistic: str, terms: Sequence[Term]) -> str:
    """Read what a share is of: one column of the same unit as its own one column."""
    per = node.text("per", default="")
    if (statistic == "share") != bool(per):
        sentence = "a share is of a column" if statistic == "share" else "only a share is of a column"
        raise node.error("per" if per else "", f"{sentence}: statistic share, per: <column>.")
    if not per:
        return ""
    try:
        wholes = parse_terms(per)
        convert(1.0, source_unit(terms), source_unit(wholes))
    except (ValueError, QuantityError) as error:
        raise node.error("per", f"{error}.") from None
    if [term.sign for term in (*terms, *wholes)] != [1, 1]:
        raise node.error("per", "a share divides one column by one column.")
    return wholes[0].column
