"""Read a rule of ``compare:``: what is compared, what change is tolerated, what change is too small to block.

A change is relative where the metric's scale is ``log``, and in the metric's unit on the other scales. The
policy's tolerance is relative, so on the other scales a rule has its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hil.base.units import QuantityError, Unit, convert, find_unit
from hil.base.yamlfile import Node
from hil.metrics.metric import Metric
from hil.thresholds.comparison import CompareRule
from hil.thresholds.limits import Where
from hil.thresholds.types import Policy

# relative changes: less cannot be told from rounding, and of a rate nothing is left at 1
TOLERANCE_MIN = 0.001
TOLERANCE_MAX = 0.9

_VALUE_KEY = re.compile(r"(tolerance|min_effect)_(\w+)")
_SHARES = ("ratio", "share")


@dataclass(frozen=True)
class _Measure:
    """In which unit a rule's values are: shares of the value on the scale ``log``, else the metric's."""

    relative: bool
    unit: Unit

    @property
    def largest(self) -> float | None:
        return TOLERANCE_MAX if self.relative else None


def read_compare_rule(node: Node, where: Where, metric: Metric, policy: Policy) -> CompareRule:
    """Read what a rule says beside ``where``. Raises ConfigError with file and line."""
    _check_comparable(node, metric)
    relative = metric.scale == "log"
    measure = _Measure(relative, find_unit("ratio") if relative else metric.unit)
    tolerance = _read_value(node, "tolerance", metric, measure)
    effect = _read_value(node, "min_effect", metric, measure)
    if tolerance is None and not relative:
        raise _missing(node, "tolerance", metric)
    if effect is None and metric.scale in ("identity", "count"):
        raise _missing(node, "min_effect", metric)
    tolerance = policy.tolerance if tolerance is None else tolerance
    if effect is None:  # of an exact figure each change within the tolerance is small
        effect = min(policy.min_effect, tolerance) if relative else tolerance
    key = _key(node, "min_effect") or _key(node, "tolerance")
    check_order(node, key, effect, tolerance)
    return CompareRule(where, tolerance, effect, node.text("why"), node.where())


def _check_comparable(node: Node, metric: Metric) -> None:
    """Refuse a metric that never blocks, or whose boots have no value that can be compared."""
    if not metric.compared:
        raise node.error(
            "where",
            f"{metric.name!r} never blocks ({metric.source}: blocking: false), and a comparison does.",
            next_step="write 'blocking: compared' (or true, where limits may block too), or delete the rule: "
            "without one it is compared as advice.",
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
        raise node.error(keys[1], f"{word} is said twice: {' and '.join(keys)}.", next_step="delete one.")
    return keys[0] if keys else ""


def _read_value(node: Node, word: str, metric: Metric, measure: _Measure) -> float | None:
    """Return a tolerance or smallest effect in the unit of ``measure``, None where the rule has none."""
    wanted = f"{word}_{measure.unit.name}"
    key = _key(node, word)
    if not key:
        return node.number(wanted, default=None)
    try:
        unit = find_unit(key.removeprefix(f"{word}_"))
        value = convert(node.number(key, minimum=0.0), unit, measure.unit)
    except QuantityError as error:
        scale = (
            f"its scale is {metric.scale}, so a change is {'relative' if measure.relative else 'in its unit'}"
        )
        sentence = f"{key!r} does not fit {metric.name!r} ({scale}): {error}."
        raise node.error(key, sentence, next_step=f"write '{wanted}'.") from None
    least = TOLERANCE_MIN if measure.relative and word == "tolerance" else 0.0
    if value < least or (measure.largest is not None and value > measure.largest):
        sentence = f"{key!r} comes to {value:g}; a relative one is from {least:g} to {measure.largest:g}."
        raise node.error(key, sentence)
    return value


def _missing(node: Node, word: str, metric: Metric) -> Exception:
    return node.error(
        "",
        f"the policy's {word} is relative, and {metric.name!r} is compared on the scale {metric.scale}.",
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
