# SPDX-License-Identifier: Apache-2.0
"""What a series is compared with: the facts that rules match, and why there is no limit or no block.

A virtual air's profile is one of the facts: limits that were set on one air say nothing of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.metrics.evaluation import Metric
from hil.model import RunRecord, Scalar
from hil.thresholds.limits import Limit, series_facts
from hil.thresholds.types import Thresholds

_NEVER_BLOCKING = ("mean", "max", "min")
_REAL_TIME_SCHEDULERS = ("fifo", "freertos")


def facts_of(metric: Metric, record: RunRecord) -> dict[str, Scalar]:
    """Return what the conditions of limits, advice and suppressions are compared with."""
    return series_facts(
        metric.name,
        record.parameters,
        kind=record.kind,
        rack=record.rack,
        target=record.target,
        board=record.board,
        air=air_of(record),
    )


def air_of(record: RunRecord) -> str:
    """Return the profile of the virtual air that a record was measured on; "" where there was none."""
    return str(record.environment.get("access_point", {}).get("profile", ""))


def why_advice(
    metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds, facts: Mapping[str, Scalar]
) -> str:
    """Say why a blocking metric does not block here; "" where it does."""
    ruled = _why_ruled_out(thresholds, facts)
    if not ruled and metric.statistic in _NEVER_BLOCKING and not metric.exact:
        return f"advice: {metric.statistic} has no interval that one stall cannot move, so it does not block"
    return ruled or _why_untimed(metric, records, thresholds)


def why_muted(
    metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds, facts: Mapping[str, Scalar]
) -> str:
    """Say why what a board's boots say in a comparison does not block; "" where it does.

    Boots are compared with boots, so that a stall moves one value of many: a mean may block here.
    """
    return _why_ruled_out(thresholds, facts) or (_why_untimed(metric, records, thresholds) if records else "")


def _why_ruled_out(thresholds: Thresholds, facts: Mapping[str, Scalar]) -> str:
    advice = thresholds.advice_for(facts)
    if advice is not None:
        return f"advice: {advice.why} ({advice.source})"
    suppression = thresholds.suppression_for(facts)
    if suppression is None:
        return ""
    until = f"until {suppression.expires}, {suppression.issue}: {suppression.reason}"
    return f"suppressed {until} ({suppression.source})"


def _why_untimed(metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds) -> str:
    schedulers = {str(record.environment.get("device", {}).get("sched", "")) for record in records}
    wrong = sorted(schedulers - {"", *_REAL_TIME_SCHEDULERS})
    scheduled = metric.unit.dimension == "time" or thresholds.alone  # what is alone asks the scheduler
    if scheduled and records[0].kind == "virtual" and wrong:
        what = "times do" if metric.unit.dimension == "time" else "what its scheduler did does"
        return f"advice: the virtual board had no real-time priority (sched={wrong[0]}), so {what} not block"
    return ""


def why_no_limit(metric: Metric, record: RunRecord, thresholds: Thresholds) -> str:
    """Say that there is no limit; where there is one for another air, for which."""
    facts = facts_of(metric, record)
    limits = [limit for limit in thresholds.limits if "air" in limit.where.conditions]
    airs = {str(limit.where.conditions["air"]) for limit in limits if _holds_elsewhere(limit, facts)}
    if not airs:
        return "no limit and no baseline to compare it with"
    here = facts["air"] or "(not recorded)"
    return f"no limit on air {here}, for its limits were set on air {' and '.join(sorted(airs))}"


def _holds_elsewhere(limit: Limit, facts: Mapping[str, Scalar]) -> bool:
    return limit.where.matches({**facts, "air": limit.where.conditions["air"]})
