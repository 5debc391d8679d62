"""``series.csv``: a line a series of the verdict."""

from __future__ import annotations

from hil.model import SeriesVerdict, Verdict
from hil.reports.plain.facts import RunFacts
from hil.reports.plain.tables import Value, to_csv

NAME = "series.csv"
COLUMNS = (
    *("run_id", "started_utc", "commit", "dirty", "rack", "board", "target", "kind"),
    *("bench", "case_id", "case", "metric", "unit", "value", "at_least", "low", "high", "limit"),
    *("direction", "outcome", "blocking", "samples", "boots", "failed", "void", "clock"),
)


def series_csv(facts: RunFacts, verdict: Verdict) -> bytes:
    """Return the file. Values, interval and limit are in ``unit``; what there is none of is empty."""
    return to_csv(COLUMNS, (_line(facts, item) for item in verdict.series))


def _line(facts: RunFacts, item: SeriesVerdict) -> list[Value]:
    return [
        *(facts.run_id, facts.started_utc, facts.commit, facts.dirty, facts.rack),
        *(item.board, item.target, facts.kind(item.kind)),
        *(item.case_id.partition("/")[0], item.case_id, item.case_label, item.metric, item.unit),
        *(item.value, item.at_least, item.low, item.high, item.limit),
        *(item.direction, item.outcome, item.blocking),
        *(item.samples, item.boots, item.failed, item.void, item.clock),
    ]
