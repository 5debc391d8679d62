"""A judged run as Prometheus metrics: base units, one group a board, labels that stay the same.

``publish_latency_p99_us`` of a verdict becomes ``hil_publish_latency_seconds{stat="p99"}``, and its limit
``hil_publish_latency_limit_seconds{stat="p99"}``. Names are derived from the metric's name and unit, so a new
bench needs nothing here. docs/metrics.md lists what there is.

Whatever changes with each run (commit, run id, firmware) is a label of ``hil_run_info`` alone: any other
series with such a label would end with each commit, and a new one begin.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.model import ComparedSeries, SeriesVerdict, Verdict
from hil.reports.metrics_families import Families, case_labels
from hil.store.run_info import measured_commit


@dataclass(frozen=True)
class Group:
    """What one board pushes: its metrics, and the labels that name the group in the Pushgateway.

    ``board`` is "" where a rack pushes what it knows of itself.
    """

    job: str
    rack: str
    board: str
    families: Families

    @property
    def key(self) -> dict[str, str]:
        """Return the labels of the group besides its job."""
        return {"rack": self.rack, **({"board": self.board} if self.board else {})}


def board_groups(info: Mapping[str, Any], verdict: Verdict) -> list[Group]:
    """Return one group a planned board, those that measured nothing included; ``info`` is run.json."""
    planned = {board["id"]: (board["kind"], board["target"]) for board in info.get("boards", [])}
    measured = {item.board: (item.kind, item.target) for item in verdict.series}
    boards = {**planned, **measured}
    trigger = info.get("trigger", "local")
    return [
        Group(
            job=f"hil_{trigger}",
            rack=str(info.get("rack") or "unknown"),
            board=board,
            families=_families(info, verdict, board, *boards[board]),
        )
        for board in sorted(boards)
    ]


def _families(info: Mapping[str, Any], verdict: Verdict, board: str, kind: str, target: str) -> Families:
    families = Families({"kind": kind, "target": target})
    series = [item for item in verdict.series if item.board == board]
    _add_run(families, info, verdict, target)
    _add_board(families, verdict, board, series)
    _add_cases(families, series)
    for item in series:
        families.add_series(item)
    for compared in verdict.compared:
        if board in compared.boards:
            _add_comparison(families, compared)
    return families


def _add_run(families: Families, info: Mapping[str, Any], verdict: Verdict, target: str) -> None:
    git, ci, images = (info.get(key, {}) for key in ("git", "ci", "firmware"))  # its target's, or a variant
    firmware = ([images[name] for name in sorted(images) if name.partition("+")[0] == target] or [{}])[0]
    labels = {
        "run_id": verdict.run_id or info.get("run_id"),
        "suite": info.get("suite"),
        "commit": measured_commit(info),
        "dirty": "true" if git.get("dirty") else "false",
        "pull_request": ci.get("pull_request"),
        "firmware": str(firmware.get("sha256", ""))[:12],
        "idf": firmware.get("idf_version"),
        "profile": info.get("profile"),
        "hil": info.get("versions", {}).get("hil"),
    }
    text = "What was measured: join it for the commit; 1 always."
    families.add("hil_run_info", text, 1, **{key: str(value) for key, value in labels.items() if value})
    text = "How the whole run ended: 0 pass, 1 firmware, 2 configuration, 3 rig, 4 inconclusive."
    families.add("hil_run_exit_code", text, verdict.exit_code)
    started = _timestamp(info.get("started_utc"))
    ended = _timestamp(info.get("lease_released_utc"))
    if started is not None:
        families.add("hil_run_timestamp_seconds", "When the run started, Unix time.", started)
    if started is not None and ended is not None:
        text = "From the start of the run until its boards were free again."
        families.add("hil_run_duration_seconds", text, max(0.0, ended - started))


def _add_comparison(families: Families, item: ComparedSeries) -> None:
    """Add what a comparison says of all its boards; each of them pushes it."""
    labels = {**case_labels(item), "metric": item.metric, "role": item.role}
    if item.relative and item.change is not None:
        text = (
            "Change against the base (or the reference) over the boards of the target, 0.1 is ten per cent."
        )
        families.add("hil_comparison_change_ratio", text, item.change, **labels)
    text = "Boots that a comparison took, over the boards of the target."
    families.add("hil_comparison_boots", text, item.candidate_boots, **labels, of="candidate")
    families.add("hil_comparison_boots", text, item.other_boots, **labels, of="other")
    text = "What the gate says of a comparison, in label outcome; 1 always."
    blocking = "true" if item.blocking else "false"
    families.add("hil_comparison_outcome", text, 1, **labels, outcome=item.outcome, blocking=blocking)


def _timestamp(text: object) -> float | None:
    try:
        return datetime.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


def _add_board(families: Families, verdict: Verdict, board: str, series: Sequence[SeriesVerdict]) -> None:
    own = [item for item in verdict.not_run if item.board == board]
    measured = {item.case_id for item in series if item.samples}
    cases = {
        "measured": len(measured),
        "not_run": sum(item.expected and item.case_id not in measured for item in own),
        "ruled_out": sum(not item.expected for item in own),
    }
    faults = [fault.owner for fault in verdict.faults if fault.board in ("", board)]
    idle = cases["ruled_out"] and not (cases["measured"] or cases["not_run"] or faults)
    if not idle:
        text = "1 where the board gave samples in this run, 0 where it gave none."
        families.add("hil_board_up", text, int(cases["measured"] > 0))
    text = (
        "Cases of this board in the suite: with samples, without, and those its limits or its chip rule out."
    )
    for state, count in cases.items():
        families.add("hil_board_cases", text, count, state=state)
    text = "Faults of this board, and those of the whole rack, by whose they are."
    for owner in ("configuration", "firmware", "rig"):
        families.add("hil_board_faults", text, faults.count(owner), owner=owner)


def _add_cases(families: Families, series: Sequence[SeriesVerdict]) -> None:
    samples: dict[str, SeriesVerdict] = {}
    for item in series:
        if item.case_id not in samples or item.samples > samples[item.case_id].samples:
            samples[item.case_id] = item
    for item in samples.values():
        text = "Samples of a case, the warm-up left out."
        families.add("hil_case_samples", text, item.samples, **case_labels(item))
    for item in series:
        if item.limit is None and not item.blocking:
            continue  # nothing was decided
        families.add(
            "hil_series_outcome",
            "What the gate says of a series that has a limit or blocks, in label outcome; 1 always.",
            1,
            **case_labels(item),
            metric=item.metric,
            outcome=item.outcome,
            blocking="true" if item.blocking else "false",
        )
