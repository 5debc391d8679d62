# SPDX-License-Identifier: Apache-2.0
"""A case's steps in Allure: the boots that measured."""

from __future__ import annotations

from typing import Any

from hil.reports.allure.outcome import PASSED
from hil.reports.allure.story import Story
from hil.reports.allure.times import unix_ms

MOST_BOOTS = 48


def steps_of(story: Story) -> list[dict[str, Any]]:
    """Return which firmware measured how many samples, when, and for how long."""
    begun = ((record, unix_ms(record.started_utc)) for record in story.records[:MOST_BOOTS])
    steps = [
        _step(
            f"{record.role}, boot {record.boot_index + 1}: {record.measured_rows:,} samples",
            start,
            duration_ms=round((record.measured_s or 0.0) * 1000),
        )
        for record, start in begun
        if start is not None
    ]
    more = len(story.records) - MOST_BOOTS
    if more > 0 and steps:
        steps.append(_step(f"… and {more:,} more boots: records.jsonl has them", steps[-1]["stop"]))
    return steps


def _step(name: str, start_ms: int, *, duration_ms: int = 0) -> dict[str, Any]:
    """Return one step as Allure reads it."""
    return {
        "name": name,
        "status": PASSED,
        "stage": "finished",
        "start": start_ms,
        "stop": start_ms + duration_ms,
    }
