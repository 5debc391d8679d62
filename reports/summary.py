# SPDX-License-Identifier: Apache-2.0
"""summary.md: what a run found, from the verdict outward to every series."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hil.model import RunRecord, Verdict
from hil.reports.crashes import Crash
from hil.reports.view.figures import series_table
from hil.reports.view.markdown import Block, block_of, page, written
from hil.reports.view.marks import Code, Line, Part, Words, listed
from hil.reports.view.run import view_of
from hil.reports.view.source import Source
from hil.store import RunInfo
from hil.store.reported import NOT_REPORTED, Reported


def render_markdown(
    run_info: RunInfo,
    verdict: Verdict,
    records: Sequence[RunRecord],
    *,
    run_path: str = "",
    crashes: Sequence[Crash] = (),
    reported: Reported = NOT_REPORTED,
) -> str:
    """Return summary.md; its headings stand in the order in which a person asks."""
    view = view_of(Source(verdict, run_info, records, crashes, reported=reported))
    run: Words = Code(verdict.run_id) if verdict.run_id else "no run"
    words = [
        f"# {view.headline.title}: {written(run)}",
        written(view.headline.said),
        *(f"Next: {written(step)}" for step in view.steps),
        *(f"> {written(remark)}" for remark in view.remarks),
    ]
    parts = [
        *view.parts,
        _facts(run_info, records, run_path or verdict.run_id, reported.report),
        *_all_series(verdict),
    ]
    return page([*map(Block, words), *map(block_of, parts)])


def _facts(info: RunInfo, records: Sequence[RunRecord], run_path: str, report: str) -> Part:
    dirty = ", with changes" if info.git.dirty else ""
    facts: dict[str, Words] = {
        "suite": _value(info.suite),
        "product": _value(info.product),
        "rack": _value(info.rack),
        "air profile": _value(info.profile),
        "commit": (Code(info.git.commit[:12]), dirty) if info.git.commit else "",
        "firmware (SHA-256)": listed(map(Code, sorted({record.firmware_sha256[:12] for record in records}))),
        "started": _value(info.started_utc),
        "by": (info.user, " on ", Code(info.host)) if info.user else "",
        "workflow run": _value(info.ci.url),
        "report": _value(report),
        "judge again": Code(f"hil gate {shlex.quote(run_path)}"),
    }
    lines = (Line(listed([f"{name}: ", value], "")) for name, value in facts.items() if value)
    return Part("run", "Run", tuple(lines), 9)


def _value(value: object) -> Words:
    return Code(str(value)) if value else ""


def _all_series(verdict: Verdict) -> list[Part]:
    if not verdict.series:
        return []
    table = series_table(verdict.series)
    return [Part("series", f"All {len(verdict.series)} series", table, 9, folded=True)]
