# SPDX-License-Identifier: Apache-2.0
"""The first page: the verdict, what changed, what broke, and the ways on from there.

What a person needs in ten seconds stands open; all else is a line that opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from hil.reports.boards import boards_of
from hil.reports.page import frame
from hil.reports.site.changed import changed
from hil.reports.site.runs import ShownRun, decisive, title_of
from hil.reports.studies.build import StoredStudy, page_of, stored_studies
from hil.reports.trend.happenings import changes_beside
from hil.reports.view.html import part_of, tone_class, written
from hil.reports.view.marks import Code, Words, count
from hil.reports.view.run import FIRST, View, parts_of, view_of
from hil.reports.view.source import Source


def render_landing(
    runs: Sequence[ShownRun],
    *,
    past: int,
    raw: Sequence[str],
    trend: Mapping[str, Any] | None = None,
    nights: int = 0,
) -> str:
    """Return the page, the newest run first. ``past`` is how many runs the trend shows, ``raw`` names the
    files of each run that lie in ``runs/<run-id>/``. ``trend`` is what
    trend.json holds, of ``nights`` nights; None where no history was looked at.
    """
    runs = sorted(runs, key=lambda run: str(run.line["started_utc"]), reverse=True)
    title = title_of(runs)
    racks = {str(run.line["rack"]) for run in runs}
    sources = [_source(run, told_apart=len(racks) > 1) for run in runs]
    events = trend["events"] if trend else ()
    views = {
        run.run_id: view_of(source, changes_beside(events, run.info))
        for run, source in zip(runs, sources, strict=True)
    }
    remarks = dict.fromkeys(remark for view in views.values() for remark in view.remarks)
    steps = dict.fromkeys(step for view in views.values() for step in view.steps)
    parts = parts_of(sources)
    of_nights = changed(trend, nights=nights, heading=_heading(runs))
    is_proposed = _is_proposed(runs)
    body = [
        f"<h1>{escape(title)}</h1>",
        *_verdicts(runs, views),
        *(f"<p><b>Next:</b> {written(step)}</p>" for step in steps),
        f'<p class="remark">{escape(" ".join(remarks))}</p>' if remarks else "",
        *(part_of(part) for part in parts if part.name in FIRST),
        "" if is_proposed else of_nights,
        _ways(runs, past),
        *(part_of(part) for part in parts if part.name not in FIRST),
        of_nights if is_proposed else "",
        *(_facts(run, raw) for run in runs),
    ]
    return frame(title, body)


def _source(run: ShownRun, *, told_apart: bool) -> Source:
    tests = {key: f"tests/index.html#{found}" for key, found in run.test_ids.items()}
    place: Words = ("rack ", Code(str(run.line["rack"]))) if told_apart else ""
    files, reported = f"runs/{run.run_id}/", run.run.reported
    return Source(run.verdict, run.info, run.run.records, (), place, tests, files, reported)


def _is_proposed(runs: Sequence[ShownRun]) -> bool:
    return all(run.info.trigger == "pr" for run in runs)


def _heading(runs: Sequence[ShownRun]) -> str:
    """Return what stands above the nights' events: beside a pull request they are not its doing."""
    return "Open on the default branch, not of this change" if _is_proposed(runs) else "What changed"


def _verdicts(runs: Sequence[ShownRun], views: Mapping[str, View]) -> Iterator[str]:
    """Yield the verdicts, the decisive one first. Of the runs that pass on a rack one stands for all."""
    calm: Counter[str] = Counter()
    racks = set()
    for run in sorted(runs, key=lambda run: run is not decisive(runs)):
        rack = str(run.line["rack"])
        if rack in racks and not run.verdict.exit_code:
            calm[rack] += 1
            continue
        racks.add(rack)
        yield _verdict(run, views[run.run_id])
    for rack, number in calm.items():
        yield f'<p class="soft">{count(number, "more run")} on rack {escape(rack)} passed.</p>'


def _verdict(run: ShownRun, view: View) -> str:
    said = view.headline
    tone = tone_class(said.tone)
    parts = [*_whereabouts(run), f"suite {run.line['suite']}", f"run {run.run_id}"]
    return (
        f'<section class="verdict {tone}"><strong>{escape(said.title)}</strong>'
        f"<p>{escape(said.said)}</p>"
        f'<p class="soft">{escape(" · ".join(filter(None, parts)))}</p></section>'
    )


def _whereabouts(run: ShownRun) -> list[str]:
    """Return when, on which rack and over which air a run measured, as far as it is known."""
    started = str(run.line["started_utc"])[:16].replace("T", " ")
    parts = [
        f"{started} UTC" if started else "",
        f"product {run.line['product']}" if run.line.get("product") else "",
        f"rack {run.line['rack']}",
        f"air profile {run.line['profile']}" if run.line["profile"] else "",
    ]
    return [part for part in parts if part]


def _ways(runs: Sequence[ShownRun], past: int) -> str:
    boards = [board for run in runs for board in boards_of(run.info, run.verdict)]
    planned = sum(board.planned for board in boards)
    ruled_out = sum(len(board.ruled_out) for board in boards)
    tests = f"{count(planned, 'test')}{f' and {ruled_out} ruled out' if ruled_out else ''}"
    shown = "this run; the next ones join it" if past == 1 else f"{past} runs"
    return (
        '<div class="ways">'
        f'<a href="tests/index.html"><b>Test report →</b>{tests}: figures, charts, console, history</a>'
        f'<a href="trend/index.html"><b>Trend →</b>p50, p95, p99 against their limits over {shown}</a>'
        f"{''.join(_study(run, found) for run in runs for found in stored_studies(run.path))}</div>"
    )


def _study(run: ShownRun, found: StoredStudy) -> str:
    """Return the way to a published study that was set beside a run."""
    address = f"runs/{escape(run.run_id)}/{escape(page_of(found.study))}"
    kinds = ", ".join(found.kinds)
    text = f"published values beside those of this run ({kinds}): {' · '.join(_whereabouts(run))}"
    return f'<a href="{address}"><b>Study {escape(found.study)} →</b>{escape(text)}</a>'


def _facts(run: ShownRun, raw: Sequence[str]) -> str:
    links = [
        f'<a href="runs/{escape(run.run_id)}/{name}">{name}</a>' for name in raw if (run.path / name).exists()
    ]
    address = str(run.line["url"])
    if address.startswith("https://"):
        links.append(f'<a href="{escape(address)}">workflow run</a>')
    return f"<h2>Run {escape(run.run_id)}</h2><p>{' · '.join(links)}</p>"
