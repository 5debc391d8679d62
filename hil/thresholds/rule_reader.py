# SPDX-License-Identifier: Apache-2.0
"""Read the policy of a thresholds file, and its rules: limits, comparisons, advice, suppressions.

What a comparison tolerates, and what is too small for it to block, is relative where the metric's scale is
``log``, and in the metric's unit on the other scales; of an exact figure it is as its key says. The policy's
tolerance is relative, so on the other scales a rule has its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from hil.base.project import check_product
from hil.base.units import UNITS, QuantityError, Unit, convert, find_unit
from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean
from hil.metrics.metric import Metric
from hil.model import KINDS, Scalar
from hil.thresholds.limits import PLACE_KEYS, Advice, CompareRule, Limit, Since, Suppression, Where
from hil.thresholds.types import Parameter, Policy

# relative changes: less cannot be told from rounding, and of a rate nothing is left at 1
TOLERANCE_MIN = 0.001
TOLERANCE_MAX = 0.9

_VALUE_KEY = re.compile(r"(tolerance|min_effect)_(\w+)")
_SHARES = ("ratio", "share")


def _read_compare_rule(node: Node, where: Where, metric: Metric, policy: Policy) -> CompareRule:
    """Read what a rule says beside ``where``. Raises ConfigError with file and line."""
    _check_comparable(node, metric)
    relative = metric.scale == "log" or (metric.exact and _says_shares(node))
    tolerance, effect = (_read_value(node, word, metric, relative) for word in ("tolerance", "min_effect"))
    if tolerance is None and not relative:
        raise _missing(node, "tolerance", metric)
    if effect is None and metric.scale in ("identity", "count"):
        raise _missing(node, "min_effect", metric)
    tolerance = policy.tolerance if tolerance is None else tolerance
    if effect is None:  # of an exact figure each change within the tolerance is small
        effect = min(policy.min_effect, tolerance) if relative else tolerance
    key = _key(node, "min_effect") or _key(node, "tolerance")
    check_order(node, key, effect, tolerance)
    return CompareRule(where, tolerance, effect, node.text("why"), node.where(), relative)


def _says_shares(node: Node) -> bool:
    """Return whether a rule's values are shares: its keys end with percent, ratio or the like."""
    units = (match[2] for key in node.keys if (match := _VALUE_KEY.fullmatch(key)))
    shares = {unit.name for unit in UNITS if unit.dimension == "ratio"}
    return any(unit in shares for unit in units)


def _check_comparable(node: Node, metric: Metric) -> None:
    """Refuse a metric that never blocks, or whose boots have no value that can be compared."""
    if not metric.compared:
        raise node.error(
            "where",
            f"{metric.name!r} never blocks ({metric.source}: blocking: false), but a comparison does.",
            next_step="write 'blocking: compared' (or true, where limits may block too), or delete the "
            "rule: the metric is then compared as advice.",
        )
    if metric.statistic in ("min", "max") and not metric.exact:
        extreme = f"{metric.name!r} is a {metric.statistic}imum, and one sample decides it"
        raise node.error("where", f"{extreme}.", next_step="compare a quantile, or tail5.")
    is_share = metric.statistic in _SHARES
    if is_share != (metric.scale == "count"):
        what = "a share, which may be 0" if is_share else f"no share but a {metric.statistic}"
        raise node.error(
            "where",
            f"{metric.name!r} is {what}, so it is not compared on the scale {metric.scale}.",
            next_step=f"give the metric 'scale: {'count' if is_share else 'log'}' ({metric.source}).",
        )


def _key(node: Node, word: str) -> str:
    """Return the key that says a value, "" where there is none. Raises ConfigError where there are two."""
    keys = [key for key in node.keys if (match := _VALUE_KEY.fullmatch(key)) and match[1] == word]
    if len(keys) > 1:
        raise node.error(keys[1], f"{word} is set twice: {' and '.join(keys)}.", next_step="delete one.")
    return keys[0] if keys else ""


def _read_value(node: Node, word: str, metric: Metric, relative: bool) -> float | None:
    """Return a tolerance or smallest effect as a share, or in the metric's unit; None without one."""
    wanted_unit = find_unit("ratio") if relative else metric.unit
    wanted, key = f"{word}_{wanted_unit.name}", _key(node, word)
    if not key:
        return node.number(wanted, default=None)
    try:
        unit = find_unit(key.removeprefix(f"{word}_"))
        value = convert(node.number(key, minimum=0.0), unit, wanted_unit)
    except QuantityError as error:
        scale = f"its scale is {metric.scale}, so a change is {'relative' if relative else 'in its unit'}"
        sentence = f"{key!r} does not fit {metric.name!r} ({scale}): {error}."
        raise node.error(key, sentence, next_step=f"write '{wanted}'.") from None
    least = TOLERANCE_MIN if word == "tolerance" else 0.0
    if relative and not least <= value <= TOLERANCE_MAX:
        sentence = f"{key!r} comes to {value:g}; a relative one is from {least:g} to {TOLERANCE_MAX:g}."
        raise node.error(key, sentence)
    return value


def _missing(node: Node, word: str, metric: Metric) -> Exception:
    return node.error(
        "",
        f"the policy's {word} is relative, but {metric.name!r} is compared on the scale {metric.scale}.",
        next_step=f"add '{word}_{metric.unit.name}: …'.",
    )


def check_order(node: Node, key: str, min_effect: float, tolerance: float) -> None:
    """Raise ConfigError at ``key`` where a change may be beyond the tolerance and yet too small to block."""
    if min_effect > tolerance:
        raise node.error(
            key,
            f"min_effect ({min_effect:g}) is larger than the tolerance ({tolerance:g}): a change in between "
            "would neither pass nor block.",
            next_step="make it at most the tolerance.",
        )


LIMIT_KEY = re.compile(r"abs_(max|min)_(\w+)")
NO_LIMIT = "none"


@dataclass(frozen=True)
class RuleReader:
    """Reads rules; what they name is checked against the file's ``parameters`` and ``metrics``.

    All raise ConfigError with file and line.
    """

    parameters: Mapping[str, Parameter]
    metrics: Mapping[str, Metric]

    def read_limit(self, node: Node) -> Limit:
        where = self._read_where(node.section("where"), metric_required=True)
        metric = self.metrics[str(where.conditions["metric"])]
        bound, value = self._read_bound(node, metric)
        promised = math.isfinite(value)
        since = _read_since(node.section("since")) if promised else None
        expires = node.date("expires", default=None) if promised else None
        each = node.boolean("each", default=False)
        if each and metric.statistic not in ("p50", "mean"):
            raise node.error("each", f"{metric.name!r} is a {metric.statistic}, which has no value per row.")
        return Limit(where, bound, value, node.text("why"), since, expires, node.where(), each)

    def _read_bound(self, node: Node, metric: Metric) -> tuple[Literal["max", "min"], float]:
        bound, key, unit = _read_bound_key(node, metric)
        if node.scalar(key) == NO_LIMIT:
            return bound, math.inf if bound == "max" else -math.inf
        value = convert(node.number(key), unit, metric.unit)
        if not _can_be_broken(metric, bound, value):
            raise node.error(
                key,
                f"'{key}: {node.number(key):g}' judges nothing, because no {metric.name!r} can break it.",
                next_step=f"write another limit, or '{key}: {NO_LIMIT}' where there is no limit.",
            )
        return bound, value

    def read_compare_rule(self, node: Node, policy: Policy) -> CompareRule:
        section = node.section("where")
        where = self._read_where(section, metric_required=True)
        return _read_compare_rule(node, where, self.metrics[str(where.conditions["metric"])], policy)

    def read_advice(self, node: Node) -> Advice:
        where = self._read_where(node.section("where"), metric_required=False)
        return Advice(where, node.text("why"), node.where())

    def read_suppression(self, node: Node) -> Suppression:
        where = self._read_where(node.section("where"), metric_required=False)
        reason, issue, expires = node.text("reason"), node.text("issue"), node.date("expires")
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
                conditions[key] = check_product(place, node.where(key)) if key == "product" else place
        case = read_case(node, self.parameters)
        conditions.update({f"case.{key}": value for key, value in case.items()})
        return Where(conditions)


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


def _can_be_broken(metric: Metric, bound: Literal["max", "min"], value: float) -> bool:
    """Return whether a figure may lie beyond a limit: no share exceeds 1, only ``identity`` goes below 0."""
    if bound == "max":
        return metric.statistic not in _SHARES or value < convert(1.0, find_unit("ratio"), metric.unit)
    return metric.scale == "identity" or value > 0.0


def _read_bound_key(node: Node, metric: Metric) -> tuple[Literal["max", "min"], str, Unit]:
    """Return whether a limit is an upper one, the key that says its value, and the unit in that key."""
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
        unit = find_unit(match[2])
        convert(0.0, unit, metric.unit)
        return bound, keys[0], unit
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


BOOTS_MIN = 6  # the first look: three boots of each
BOOTS_MAX = 100
BLIND_MAX = 10.0  # tolerances

_DEFAULT = Policy()


def read_policy(node: Node | None) -> Policy:
    """Read a policy, the default one where the file has none. Raises ConfigError with file and line."""
    if node is None:
        return _DEFAULT
    tolerance = node.number(
        "tolerance", default=_DEFAULT.tolerance, minimum=TOLERANCE_MIN, maximum=TOLERANCE_MAX
    )
    usual = min(_DEFAULT.min_effect, tolerance)
    min_effect = node.number("min_effect", default=usual, minimum=0.0, maximum=TOLERANCE_MAX)
    check_order(node, "min_effect", min_effect, tolerance)
    return Policy(
        alpha=node.number("alpha", default=_DEFAULT.alpha, minimum=1e-6, maximum=0.5),
        min_samples=node.integer("min_samples", default=_DEFAULT.min_samples, minimum=1),
        max_void_ratio=node.number(
            "max_void_ratio", default=_DEFAULT.max_void_ratio, minimum=0.0, maximum=1.0
        ),
        on_undecided=cast(
            Literal["neutral", "fail"],
            node.choice("on_undecided", ("neutral", "fail"), default=_DEFAULT.on_undecided),
        ),
        beta=node.number("beta", default=_DEFAULT.beta, minimum=1e-6, maximum=0.5),
        tolerance=tolerance,
        min_effect=min_effect,
        max_boots=node.integer("max_boots", default=_DEFAULT.max_boots, minimum=BOOTS_MIN, maximum=BOOTS_MAX),
        blind_below=node.number("blind_below", default=_DEFAULT.blind_below, minimum=0.0, maximum=BLIND_MAX),
    )
