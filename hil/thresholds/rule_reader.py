"""Read the rules of a thresholds file that hold somewhere: limits, comparisons, advice, suppressions."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hil.base.units import QuantityError, convert, find_unit
from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean
from hil.metrics.metric import Metric
from hil.model import KINDS, Scalar
from hil.thresholds.comparison import CompareRule
from hil.thresholds.comparison_reader import read_compare_rule
from hil.thresholds.limits import PLACE_KEYS, Advice, Limit, Since, Suppression, Where
from hil.thresholds.types import Parameter, Policy

LIMIT_KEY = re.compile(r"abs_(max|min)_(\w+)")


@dataclass(frozen=True)
class RuleReader:
    """Reads rules; what they name is checked against the file's ``parameters`` and ``metrics``.

    All raise ConfigError with file and line.
    """

    parameters: Mapping[str, Parameter]
    metrics: Mapping[str, Metric]
    today: datetime.date

    def read_limit(self, node: Node) -> Limit:
        where = self._read_where(node.section("where"), metric_required=True)
        metric = self.metrics[str(where.conditions["metric"])]
        bound, value = _read_bound(node, metric)
        since = _read_since(node.section("since"))
        expires = node.date("expires", default=None)
        self._reject_expired(node, "limit", expires)
        return Limit(where, bound, value, node.text("why"), since, expires, node.where())

    def read_compare_rule(self, node: Node, policy: Policy) -> CompareRule:
        section = node.section("where")
        where = self._read_where(section, metric_required=True)
        return read_compare_rule(node, where, self.metrics[str(where.conditions["metric"])], policy)

    def read_advice(self, node: Node) -> Advice:
        where = self._read_where(node.section("where"), metric_required=False)
        return Advice(where, node.text("why"), node.where())

    def read_suppression(self, node: Node) -> Suppression:
        where = self._read_where(node.section("where"), metric_required=False)
        reason, issue, expires = node.text("reason"), node.text("issue"), node.date("expires")
        self._reject_expired(node, "suppression", expires)
        return Suppression(where, reason, issue, expires, node.where())

    def _read_where(self, node: Node, *, metric_required: bool) -> Where:
        conditions: dict[str, Scalar] = {}
        metric = node.choice("metric", tuple(self.metrics), default=None)
        if metric is None and metric_required:
            raise node.error("", "'where' names no metric.", next_step="add 'metric: …'.")
        if metric is not None:
            conditions["metric"] = metric
        for key in PLACE_KEYS:
            place = node.choice(key, KINDS, default=None) if key == "kind" else node.text(key, default=None)
            if place is not None:
                conditions[key] = place
        case = read_case(node, self.parameters)
        conditions.update({f"case.{key}": value for key, value in case.items()})
        return Where(conditions)

    def _reject_expired(self, node: Node, what: str, expires: datetime.date | None) -> None:
        if expires is not None and expires < self.today:
            sentence = f"this {what} expired on {expires}; today is {self.today}."
            raise node.error(
                "expires", sentence, next_step="look at it again: delete it or give it a new day."
            )


def read_case(node: Node, parameters: Mapping[str, Parameter]) -> dict[str, Scalar]:
    """Read the key ``case``: parameters and the values that are meant; {} where it is missing."""
    case = node.section("case", default=None)
    if case is None:
        return {}
    return {
        key: check_value(case, key, require_parameter(case, key, parameters), value)
        for key, value in case.all_scalars().items()
    }


def require_parameter(node: Node, name: str, parameters: Mapping[str, Parameter]) -> Parameter:
    """Return the parameter of this name. Raises ConfigError with the nearest one at the key ``name``."""
    if name not in parameters:
        hint = did_you_mean(name, parameters)
        raise node.error(name, f"unknown parameter {name!r}{hint} Parameters: {', '.join(parameters)}.")
    return parameters[name]


def check_value(node: Node, key: str, parameter: Parameter, value: Scalar) -> Scalar:
    """Return the value as a case holds it. Raises ConfigError at ``key`` where it is out of the domain."""
    try:
        return parameter.check(value)
    except ValueError as error:
        raise node.error(key, f"parameter {parameter.name!r} {error}") from None


def _read_bound(node: Node, metric: Metric) -> tuple[Literal["max", "min"], float]:
    keys = [key for key in node.keys if LIMIT_KEY.fullmatch(key)]
    bound: Literal["max", "min"] = "max" if metric.direction == "lower" else "min"
    wanted = f"abs_{bound}_{metric.unit.name}"
    if len(keys) != 1:
        found = f"it has {' and '.join(keys)}" if keys else "it has none"
        raise node.error("", f"a limit has one value, as in '{wanted}: …'; {found}.")
    match = LIMIT_KEY.fullmatch(keys[0])
    assert match is not None
    if match[1] != bound:
        sentence = f"{keys[0]!r} does not fit {metric.name!r}, where {metric.direction} is better."
        raise node.error(keys[0], sentence, next_step=f"write '{wanted}'.")
    try:
        return bound, convert(node.number(keys[0]), find_unit(match[2]), metric.unit)
    except QuantityError as error:
        sentence = f"{keys[0]!r} does not fit {metric.name!r}: {error}."
        raise node.error(keys[0], sentence, next_step=f"write '{wanted}'.") from None


def _read_since(node: Node) -> Since:
    return Since(
        date=node.date("date"),
        commit=node.text("commit", default=""),
        board=node.text("board", default=""),
        n=node.integer("n", default=0, minimum=0),
    )
