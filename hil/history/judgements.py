# SPDX-License-Identifier: Apache-2.0
"""``out/history/judgements.jsonl``: one JSON line a run, of how the gate judged firmware that nobody changed.

docs/reference/schema/judgements.schema.json says what a line holds. A run that is appended again replaces its
line, so everything here may be repeated.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from hil.base.errors import ConfigError
from hil.base.schema import check_schema
from hil.model import ComparedSeries, Kind, bench_of
from hil.store import StoredRun
from hil.store.codec import build
from hil.store.files import replace_file
from hil.store.jsonl import parse_line, read_jsonl
from hil.thresholds import Thresholds, own_limits
from hil.thresholds.loader import FOLDER

# Raised where the gate decides otherwise on the same boots, or asks for others: how often its older rules
# were wrong says nothing of today's, so their judgements no longer count.
GATE = 2
JUDGEMENTS_SCHEMA = 1
JUDGEMENTS_FILE = "judgements.jsonl"

Judged = Literal["pass", "improved", "regressed", "undecided"]
_JUDGED: Mapping[str, Judged] = {
    "pass": "pass",
    "improved": "improved",
    "regressed": "regressed",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class Judgement:
    """One blocking comparison of a metric of a case on a target's boards, of a firmware with itself.

    ``smallest_effect`` is the smallest change that it would have seen: relative where ``relative``, else in
    the metric's unit; None where that cannot be said. ``boots`` are those of both sides and all boards.
    """

    target: str
    kind: Kind
    case_id: str
    metric: str
    outcome: Judged
    boots: int
    smallest_effect: float | None
    relative: bool


@dataclass(frozen=True)
class UnchangedRun:
    """A run of unchanged firmware. ``noise`` is the profile that was simulated, "" where none was.

    ``gate`` numbers the rules by which it was judged, ``alpha`` is the share of such runs that these allow
    themselves to block.
    """

    run_id: str
    started_utc: str
    rack: str
    noise: str
    gate: int
    alpha: float
    judgements: tuple[Judgement, ...]

    @property
    def started(self) -> datetime.datetime:
        """When it began. Raises ValueError where ``started_utc`` is no moment."""
        moment = datetime.datetime.fromisoformat(self.started_utc)
        return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def unchanged_run_of(run: StoredRun) -> UnchangedRun | None:
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
            f"{run.path}: its folder {FOLDER} lacks {missing[0]}.yaml, so what it compared is unknown.",
            next_step="restore the run's folder, or measure again.",
        )
    items = [item for item in verdict.compared if _is_judged(item, policies[bench_of(item.case_id)])]
    if not items:
        return None
    alpha = max(policies[bench_of(item.case_id)].policy.alpha for item in items)
    return UnchangedRun(
        run_id=run.run_id,
        started_utc=info.started_utc,
        rack=info.rack,
        noise=info.noise.profile if info.noise else "",
        gate=info.compared.gate,
        alpha=alpha / info.legs,
        judgements=tuple(map(_judgement, items)),
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


def read_judgements(path: Path) -> list[UnchangedRun]:
    """Return the runs, each once, the earliest first; none where the file does not exist yet.

    A last line that was cut off in writing is left out; ``hil report build RUN`` puts its run back.

    Raises:
        ConfigError: another line is damaged; names file and line, and the way out.
        RigError: the disk does not give it.
    """
    return with_runs((), read_jsonl(path, _parse))


def write_judgements(path: Path, runs: Iterable[UnchangedRun]) -> None:
    """Write the file at once and whole. Raises OSError."""
    replace_file(path, "".join(map(to_line, runs)).encode())


def with_runs(runs: Iterable[UnchangedRun], added: Sequence[UnchangedRun]) -> list[UnchangedRun]:
    """Return the runs with ``added`` in place of those of the same ids, in the order of their start."""
    by_id = {run.run_id: run for run in (*runs, *added)}
    return sorted(by_id.values(), key=lambda run: (run.started_utc, run.run_id))


def to_line(run: UnchangedRun) -> str:
    """Return a run as its line, with its end."""
    line = {"schema": JUDGEMENTS_SCHEMA, **asdict(run)}
    return json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _parse(path: Path, number: int, raw: bytes) -> UnchangedRun:
    loss = "hil report build RUN puts a stored run back"
    return parse_line(path, number, raw, read=_run_of, loss=loss)


def _run_of(line: Mapping[str, Any]) -> UnchangedRun:
    """Return what to_line() wrote. Raises ValueError, which says what is wrong."""
    check_schema(line.get("schema"), JUDGEMENTS_SCHEMA)
    run = build(UnchangedRun, {key: value for key, value in line.items() if key != "schema"})
    if wrong := next(_wrong(run), ""):
        raise ValueError(wrong)
    return run


def _wrong(run: UnchangedRun) -> Iterator[str]:
    try:
        _ = run.started
    except ValueError:
        yield f"started_utc is {run.started_utc!r}; expected a moment such as 2026-11-20T22:12:57Z"
    if not run.judgements:
        yield "judgements is empty; expected at least one"
    if not 0 < run.alpha < 1:
        yield f"alpha is {run.alpha!r}; expected a share between 0 and 1"
