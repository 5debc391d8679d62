"""Read the policy of a thresholds file: what share of errors is accepted, and what a metric needs."""

from __future__ import annotations

from typing import Literal, cast

from hil.base.yamlfile import Node
from hil.thresholds.comparison_reader import TOLERANCE_MAX, TOLERANCE_MIN, check_order
from hil.thresholds.types import Policy

BOOTS_MIN = 4  # the first look where there is no history: two boots of each
BOOTS_MAX = 100
SAMPLES_MAX = 1_000_000

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
    outcome = node.choice("on_inconclusive", ("warn", "fail"), default=_DEFAULT.on_inconclusive)
    return Policy(
        alpha=node.number("alpha", default=_DEFAULT.alpha, minimum=1e-6, maximum=0.5),
        min_samples=node.integer("min_samples", default=_DEFAULT.min_samples, minimum=1),
        max_void_ratio=node.number(
            "max_void_ratio", default=_DEFAULT.max_void_ratio, minimum=0.0, maximum=1.0
        ),
        on_inconclusive=cast(Literal["warn", "fail"], outcome),
        beta=node.number("beta", default=_DEFAULT.beta, minimum=1e-6, maximum=0.5),
        tolerance=tolerance,
        min_effect=min_effect,
        max_boots=node.integer("max_boots", default=_DEFAULT.max_boots, minimum=BOOTS_MIN, maximum=BOOTS_MAX),
        samples_per_boot=node.integer(
            "samples_per_boot", default=_DEFAULT.samples_per_boot, minimum=1, maximum=SAMPLES_MAX
        ),
    )
