# SPDX-License-Identifier: Apache-2.0
"""A case's steps in Allure: the boots that measured, then what was judged of them, with a status each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hil.gate.words.comparisons import told
from hil.model import ComparedSeries
from hil.reports import rows
from hil.reports.allure.outcome import PASSED, REGRESSION, UNDECIDED, status_of
from hil.reports.allure.story import Story
from hil.reports.allure.times import unix_ms
from hil.reports.names import human_metric

MOST_BOOTS = 48


def steps_of(story: Story, stop_ms: int) -> list[dict[str, Any]]:
    """Return the steps of a case that ended at ``stop_ms``, in ms since 1970; to judge it takes no time."""
    judged = [step(name, stop_ms, status=status) for name, status in _judgements(story)]
    if not judged:
        return _boots(story)
    worst = next((one["status"] for one in judged if one["status"] != PASSED), PASSED)
    return [*_boots(story), step("judged", stop_ms, status=worst) | {"steps": judged}]


def _boots(story: Story) -> list[dict[str, Any]]:
    """Return which firmware measured how many samples, when, and for how long."""
    begun = ((record, unix_ms(record.started_utc)) for record in story.records[:MOST_BOOTS])
    steps = [
        step(
            f"{record.role}, boot {record.boot_index + 1}: {record.measured_rows:,} samples",
            start,
            duration_ms=round((record.measured_s or 0.0) * 1000),
        )
        for record, start in begun
        if start is not None
    ]
    more = len(story.records) - MOST_BOOTS
    if more > 0 and steps:
        steps.append(step(f"… and {more:,} more boots: records.jsonl has them", steps[-1]["stop"]))
    return steps


def _judgements(story: Story) -> Iterator[tuple[str, str]]:
    """Yield name and status of every limit and comparison that can fail a run, those that did first."""
    found = []
    for item in story.series:
        if item.blocking and item.limit is not None:
            least = "≥ " if item.at_least else ""
            value = "–" if item.value is None else f"{least}{rows.quantity(item, item.value)}"
            name = f"{human_metric(item)} {value}, limit {rows.quantity(item, item.limit)}"
            found.append((name, _status(rows.outcome(item))))
    found += [(told(item), _status(item.outcome)) for item in story.compared if _is_decided(item)]
    order = (status_of(REGRESSION), status_of(UNDECIDED))
    yield from sorted(found, key=lambda one: order.index(one[1]) if one[1] in order else len(order))


def _is_decided(item: ComparedSeries) -> bool:
    """Say whether a comparison can fail a run, and had a base to compare with."""
    return item.blocking and item.outcome != "no-baseline"


def _status(outcome: str) -> str:
    words = {"regressed": REGRESSION, "undecided": UNDECIDED}
    return status_of(words[outcome]) if outcome in words else PASSED


def step(name: str, start_ms: int, *, duration_ms: int = 0, status: str = PASSED) -> dict[str, Any]:
    """Return one step as Allure reads it."""
    return {
        "name": name,
        "status": status,
        "stage": "finished",
        "start": start_ms,
        "stop": start_ms + duration_ms,
    }
