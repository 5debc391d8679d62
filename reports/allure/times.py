# SPDX-License-Identifier: Apache-2.0
"""When a case ran: from its record's clock, never from how long pytest waited for it."""

from __future__ import annotations

import datetime

from hil.base.units import convert, find_unit, unit_of
from hil.model import RunRecord
from hil.reports.allure.story import Story
from hil.store import RunInfo

_DONE, _INTERVAL = "done_us", "interval_us"


def times_of(story: Story, run_start: int) -> tuple[int, int]:
    """Return start and stop in ms since 1970.

    The start is that of the first boot, and the duration the sum of what was measured in each, without the
    turns of other boards between them. What was not measured took no time, at the run's start.
    """
    starts = [start for record in story.records if (start := unix_ms(record.started_utc)) is not None]
    if not starts:
        return run_start, run_start
    return min(starts), min(starts) + round(sum(_measured_ms(story, record) for record in story.records))


def run_start_of(info: RunInfo) -> int:
    return unix_ms(info.started_utc) or 0


def unix_ms(text: object) -> int | None:
    """Read a time such as ``2026-11-20T22:12:57Z``; None where it is none."""
    try:
        return round(datetime.datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None


def _measured_ms(story: Story, record: RunRecord) -> float:
    """Return the latest moment in a record, or the sum of its intervals.

    Moments are ``done_us``; where there is none, the columns that a metric subtracts from one another.
    """
    if _DONE not in record.columns and _INTERVAL in record.columns:
        return sum(record.columns[_INTERVAL]) / 1000
    metrics = story.thresholds.metrics.values() if story.thresholds else ()
    subtracted = {term.column for metric in metrics if len(metric.terms) > 1 for term in metric.terms}
    names = {_DONE} if _DONE in record.columns else subtracted
    moments = [name for name in names & record.columns.keys() if unit_of(name).dimension == "time"]
    latest = [
        convert(max(record.columns[name], default=0), unit_of(name), find_unit("ms")) for name in moments
    ]
    return max(latest, default=0.0)
