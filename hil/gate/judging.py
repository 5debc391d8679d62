"""The gate: a pure function from records and thresholds to a verdict. The same input gives the same bytes.

``alpha`` is shared
out: with m blocking decisions in the run each may be wrong with probability alpha/m, so that at most the
share alpha of clean runs is blocked. See docs/gate.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hil.errors import ConfigError
from hil.gate.conclusion import conclude
from hil.gate.decision import Decision, decide, prepare
from hil.model import Entry, Fault, NotRun, RunRecord, Verdict
from hil.thresholds.types import Thresholds


def judge(
    entries: Sequence[Entry],
    thresholds: Mapping[str, Thresholds],
    history: Sequence[RunRecord] | None = None,
) -> Verdict:
    """Judge the entries of one run's journal.

    ``history`` holds records of earlier sessions; absolute limits do not depend on it.

    Raises:
        ConfigError: a bench without thresholds, a column that a metric needs is absent, two limits match
            and neither is more specific, two records of one boot, records of several runs.
    """
    del history  # the limits of one run need no other
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role == "candidate"]
    faults = tuple(entry for entry in entries if isinstance(entry, Fault))
    not_run = tuple(entry for entry in entries if isinstance(entry, NotRun))
    run_id = _only_run(entries)
    _reject_duplicates(records)
    decisions = _decisions(records, thresholds)
    limited = Counter(decision.blocking for decision in decisions if decision.limit is not None)
    series = tuple(decide(item, family=max(1, limited[item.blocking])) for item in decisions)
    strict = any(item.thresholds.policy.on_inconclusive == "fail" for item in decisions)
    return conclude(run_id, series, faults, not_run, fail_inconclusive=strict)


def _only_run(entries: Sequence[Entry]) -> str:
    run_ids = sorted({entry.run_id for entry in entries})
    if len(run_ids) > 1:
        raise ConfigError(f"the journal holds entries of several runs: {', '.join(run_ids)}.")
    return run_ids[0] if run_ids else ""


def _reject_duplicates(records: Sequence[RunRecord]) -> None:
    counted = Counter((record.rack, record.board, record.boot_index, record.case_id) for record in records)
    for (_, board, boot, case_id), times in counted.items():
        if times > 1:
            raise ConfigError(
                f"the journal holds {times} records of {case_id} on {board}, boot {boot}; one was expected.",
                next_step="delete the line that does not belong there; records are never averaged.",
            )


def _decisions(records: Sequence[RunRecord], thresholds: Mapping[str, Thresholds]) -> list[Decision]:
    """Return one decision a (board, case, metric), in an order that does not depend on the journal's."""
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: record.boot_index):
        groups.setdefault((record.rack, record.board, record.case_id), []).append(record)
    found = []
    for key in sorted(groups):
        bench = groups[key][0].bench
        if bench not in thresholds:
            raise ConfigError(
                f"bench {bench!r} has no thresholds.", next_step=f"write thresholds/{bench}.yaml."
            )
        own = thresholds[bench]
        found += [
            prepare(metric, tuple(groups[key]), own) for metric in own.metrics_of(groups[key][0].parameters)
        ]
    return found
