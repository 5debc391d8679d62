# SPDX-License-Identifier: Apache-2.0
"""How the gate judged firmware that nobody changed: what a rack's check is worth is reckoned from it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.history.summary import Judged, Judgement, Summary, Unchanged
from hil.model import ComparedSeries, bench_of
from hil.store import StoredRun
from hil.thresholds import Thresholds, own_limits
from hil.thresholds.loader import FOLDER

# Raised where the gate decides otherwise on the same boots, or asks for others: how often its older rules
# were wrong says nothing of today's, so their judgements no longer count.
GATE = 2

_JUDGED: Mapping[str, Judged] = {
    "pass": "pass",
    "improved": "improved",
    "regressed": "regressed",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class UnchangedRun:
    """A run of unchanged firmware, and when it began."""

    run_id: str
    started: datetime.datetime
    rack: str
    judged: Unchanged


def unchanged_runs(runs: Iterable[Summary]) -> list[UnchangedRun]:
    """Return the runs of the history that measured unchanged firmware."""
    return [UnchangedRun(run.run_id, run.started, run.rack, run.unchanged) for run in runs if run.unchanged]


def unchanged_of(run: StoredRun) -> Unchanged | None:
    """Return what the gate said of unchanged firmware; None of another run, and where nothing was judged.

    A comparison without boots is no judgement, nor is that of an exact figure: the same image has one size.

    Raises ConfigError where the run's thresholds are damaged.
    """
    info, verdict = run.info, run.verdict
    if verdict is None or not (info.compared and info.compared.unchanged):
        return None
    policies = own_limits(run)
    missing = sorted({bench_of(item.case_id) for item in verdict.compared} - set(policies))
    if missing:
        raise ConfigError(
            f"{run.path}: its folder {FOLDER} lacks {missing[0]}.yaml, so its comparison is unknown.",
            next_step="restore the run's folder, or measure again.",
        )
    items = [item for item in verdict.compared if _is_judged(item, policies[bench_of(item.case_id)])]
    if not items:
        return None
    alpha = max(policies[bench_of(item.case_id)].policy.alpha for item in items)
    return Unchanged(
        gate=info.compared.gate,
        alpha=alpha / info.legs,
        judgements=tuple(map(_judgement, items)),
        noise=info.noise.profile if info.noise else "",
    )


def _is_judged(item: ComparedSeries, limits: Thresholds) -> bool:
    judged = item.blocking and item.outcome in _JUDGED and item.candidate_boots and item.other_boots
    return bool(judged) and not limits.metrics[item.metric].exact


def _judgement(item: ComparedSeries) -> Judgement:
    return Judgement(
        target=item.target,
        kind=item.kind,
        case_id=item.case_id,
        metric=item.metric,
        outcome=_JUDGED[item.outcome],
        boots=item.candidate_boots + item.other_boots,
        smallest_effect=item.smallest_effect,
        relative=item.relative,
    )
