"""``comparisons.csv``: a line a comparison with base or reference; a heading alone where there is none."""

from __future__ import annotations

from hil.model import ComparedSeries, Verdict
from hil.reports.plain.facts import RunFacts
from hil.reports.plain.tables import Value, to_csv

NAME = "comparisons.csv"
_BETWEEN = " "  # of boards
COLUMNS = (
    *("run_id", "started_utc", "commit", "dirty", "rack", "boards", "target", "kind"),
    *("bench", "case_id", "case", "metric", "unit", "role", "candidate_value", "other_value"),
    *("relative", "change", "low", "high", "tolerance", "min_effect", "smallest_effect", "pass_bound"),
    *("direction", "outcome", "blocking", "early", "z", "boundary", "look", "looks"),
    *("candidate_boots", "other_boots", "boot_deviation", "session_deviation"),
    *("history_sessions", "history_weight", "odd_boards", "clock", "reason"),
)


def comparisons_csv(facts: RunFacts, verdict: Verdict) -> bytes:
    """Return the file; changes are relative (0.1: ten per cent) where ``relative`` is 1, else in ``unit``."""
    return to_csv(COLUMNS, (_line(facts, item) for item in verdict.compared))


def _line(facts: RunFacts, item: ComparedSeries) -> list[Value]:
    return [
        *(facts.run_id, facts.started_utc, facts.commit, facts.dirty, item.rack),
        *(_BETWEEN.join(item.boards), item.target, facts.kind(item.kind)),
        *(item.case_id.partition("/")[0], item.case_id, item.case_label, item.metric, item.unit, item.role),
        *(item.candidate_value, item.other_value, item.relative, item.change, item.low, item.high),
        *(item.tolerance, item.min_effect, item.smallest_effect, item.pass_bound),
        *(item.direction, item.outcome, item.blocking, item.early),
        *(item.z, item.boundary, item.look, item.looks, item.candidate_boots, item.other_boots),
        *(item.boot_deviation, item.session_deviation, item.history_sessions, item.history_weight),
        *(_BETWEEN.join(item.odd_boards), item.clock, item.reason),
    ]
