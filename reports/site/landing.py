# SPDX-License-Identifier: Apache-2.0
"""The first page: the verdict, what changed, what broke, and the ways on from there.

What a person needs in ten seconds stands open; all else is a line that opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from hil.gate.words.banner import banner_of
from hil.model import ComparedSeries, Fault, NotRun, SeriesVerdict, Verdict
from hil.reports import compared, rows
from hil.reports import page as markup
from hil.reports.boards import BoardCases, boards_of, not_run_groups, remarks, split_not_run
from hil.reports.page import frame
from hil.reports.site.changed import changed
from hil.reports.site.runs import ShownRun, decisive, title_of
from hil.reports.studies.build import StoredStudy, page_of, stored_studies
from hil.reports.trend.happenings import changes_beside


def comparisons(run: ShownRun) -> str:
    """Return the comparisons that block, what is behind those that did not pass, and advice folded."""
    found = compared.ranked(run.verdict)
    if not found:
        return ""
    blocking = [item for item in found if item.blocking]
    open_ = [_row("td", _cells(item)) for item in blocking if item.outcome != "pass"]
    passed = [_row("td", _cells(item)) for item in blocking if item.outcome == "pass"]
    title = f"{compared.heading(found)}, rack {run.line['rack']}"
    head = _row("th", compared.HEAD)
    advice = [_row("td", compared.cells(item)) for item in found if not item.blocking]
    behind = [markup.details(title, lines) for title, lines in compared.notable(run.verdict)]
    return (
        f"<h2>{escape(title)}</h2>"
        + (markup.scrolled(title, head, open_) if open_ else "")
        + (markup.folded(f"{_count(len(passed), 'comparison')} passed", head, passed) if passed else "")
        + (markup.folded(f"{_count(len(advice), 'comparison')} of advice", head, advice) if advice else "")
        + markup.listed("Behind what did not simply pass", behind)
        + markup.explained("What signs and columns mean", compared.legend(found))
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _row(tag: str, cells: Iterable[str]) -> str:
    """Return a row: sign, metric and case stand left."""
    return markup.row(tag, cells, names=compared.HEAD.index("case") + 1)


def _cells(item: ComparedSeries) -> list[str]:
    tones = {"regressed": "bad", "improved": "good", "pass": ""}
    first, *rest = (cell.removesuffix(compared.EARLY_MARK) for cell in compared.cells(item))
    tone = tones.get(item.outcome, "unsure")
    return [markup.bold(first, tone) if tone else first, *rest]


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
    told = [remark for run in runs for remark in remarks(run.info, run.verdict)]
    links = [_links(run) for run in runs]
    events = trend["events"] if trend else ()
    of_nights = changed(trend, nights=nights, heading=_heading(runs))
    is_proposed = _is_proposed(runs)
    body = [
        f"<h1>{escape(title)}</h1>",
        *_verdicts(runs, events),
        f'<p class="remark">{escape(" ".join(dict.fromkeys(told)))}</p>' if told else "",
        _broken(runs, links),
        "" if is_proposed else of_nights,
        _faults(runs, links),
        _ways(runs, past),
        _traces(runs, links),
        _losses(runs, links, planted=False),
        *map(comparisons, runs),
        *_limits(runs),
        of_nights if is_proposed else "",
        _boards(runs),
        _not_run(runs),
        _losses(runs, links, planted=True),
        _worth_knowing(runs, links),
        *(_facts(run, raw) for run in runs),
    ]
    return frame(title, body)


def _is_proposed(runs: Sequence[ShownRun]) -> bool:
    return all(run.info.trigger == "pr" for run in runs)


def _heading(runs: Sequence[ShownRun]) -> str:
    """Return what stands above the nights' events: beside a pull request they are not its doing."""
    return "Open on the default branch, not of this change" if _is_proposed(runs) else "What changed"


_Links = Mapping[tuple[str, str], str]


def _links(run: ShownRun) -> _Links:
    """Return the address of each (board, case id) in the test report; none where it cannot be known."""
    return {key: f"tests/index.html#{found}" for key, found in run.test_ids.items()}


def _linked(links: _Links, item: SeriesVerdict | Fault, text: str) -> str:
    return markup.link(links.get((item.board, item.case_id), ""), text)


def _verdicts(runs: Sequence[ShownRun], events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the verdicts, the decisive one first. Of the runs that pass on a rack one stands for all."""
    calm: Counter[str] = Counter()
    racks = set()
    for run in sorted(runs, key=lambda run: run is not decisive(runs)):
        rack = str(run.line["rack"])
        if rack in racks and not run.verdict.exit_code:
            calm[rack] += 1
            continue
        racks.add(rack)
        yield _verdict(run, events)
    for rack, count in calm.items():
        yield f'<p class="soft">{_count(count, "more run")} on rack {escape(rack)} passed.</p>'


def _verdict(run: ShownRun, events: Sequence[Mapping[str, Any]]) -> str:
    changes = changes_beside(events, run.info) or list(run.run.reported.changes)
    said = banner_of(run.verdict, changes)
    tone = said.tone.replace("open", "unsure")
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
    tests = f"{_count(planned, 'test')}{f' and {ruled_out} ruled out' if ruled_out else ''}"
    shown = "this run; the next ones join it" if past == 1 else f"{past} runs"
    return (
        '<div class="ways">'
        f'<a href="tests/index.html"><b>Test report →</b>{tests}: figures, charts, console, history</a>'
        f'<a href="trend/index.html"><b>Trend →</b>p50, p95, p99 against their limits over {shown}</a>'
        f"{''.join(map(_studies, runs))}</div>"
    )


def _studies(run: ShownRun) -> str:
    """Return the ways to the published studies that were set beside a run."""
    return "".join(_study(run, found) for found in stored_studies(run.path))


def _study(run: ShownRun, found: StoredStudy) -> str:
    address = f"runs/{escape(run.run_id)}/{escape(page_of(found.study))}"
    kinds = ", ".join(found.kinds)
    text = f"published values beside those of this run ({kinds}): {' · '.join(_whereabouts(run))}"
    return f'<a href="{address}"><b>Study {escape(found.study)} →</b>{escape(text)}</a>'


NEAREST_SHOWN = 5
_BOARD_HEAD = (
    "Board",
    "Target",
    "Cases",
    "Measured",
    "Faulted",
    "Not run",
    "Limits kept",
    "Broken",
    "Exceeded, not provably",
    "Undecided",
)


def _boards(runs: Sequence[ShownRun]) -> str:
    """Return each board's part, folded where every one measured all that was planned and broke nothing."""
    found = [(run, board) for run in runs for board in boards_of(run.info, run.verdict)]
    if not found:
        return ""
    mixed = len({board.kind for _, board in found}) > 1
    lines = [_board_row(run, board, mixed=mixed) for run, board in found]
    head = markup.row("th", _BOARD_HEAD)
    calm = all(not board.faulted and not board.not_run for _, board in found)
    if calm and all(run.verdict.exit_code == 0 for run in runs):
        count = len({(run.line["rack"], board.board) for run, board in found})
        return markup.folded(f"{_count(count, 'board')}, all that was planned measured", head, lines)
    return markup.table("Boards", head, lines)


def _board_row(run: ShownRun, board: BoardCases, *, mixed: bool) -> str:
    series = [item for item in run.verdict.series if item.board == board.board]
    limited = [item for item in series if item.blocking and item.limit is not None]
    marginal = sum(map(rows.is_marginal, limited))
    kept = sum(item.outcome in ("pass", "improved") for item in limited) - marginal
    cells = [
        board.place if mixed else board.board,
        board.target or "–",
        str(board.planned),
        str(len(board.measured)),
        markup.count(len(board.faulted), "bad"),
        markup.count(len(board.not_run), "unsure"),
        str(kept),
        markup.count(sum(map(rows.is_blocked, series)), "bad"),
        markup.count(marginal, "unsure"),
        markup.count(sum(item.outcome == "undecided" for item in limited), "unsure"),
    ]
    return markup.row("td", cells)


def _limits(runs: Sequence[ShownRun]) -> Iterator[str]:
    """Yield the limits of each rack, of whatever runs it measured them in."""
    by_place: dict[tuple[str, str], list[ShownRun]] = {}
    for run in runs:
        by_place.setdefault((str(run.line.get("product", "")), str(run.line["rack"])), []).append(run)
    for (_, rack), found in by_place.items():
        series = tuple(item for run in found for item in run.verdict.series)
        yield _limits_of(rack, replace(found[0].verdict, series=series))


def _limits_of(rack: str, verdict: Verdict) -> str:
    """Return the limits that are broken, exceeded or nearest, and all of them folded."""
    found = rows.limit_rows(verdict)
    if not found:
        return ""
    names = rows.boards(verdict)
    kinds = {item.board: item.kind for item in verdict.series}
    boards = [f"{board} ({kinds[board]})" if len(set(kinds.values())) > 1 else board for board in names]
    head = markup.row("th", ["Metric", "Limit", "Used", "Cases", *boards])
    open_ = [row for row in found if row.blocking and (row.broken or row.marginal)]
    shown = open_ or _nearest(found)
    title = f"{'Limits broken or exceeded' if open_ else 'Nearest to their limits'}, rack {rack}"
    lines, all_ = ([markup.row("td", _limit_cells(row)) for row in some] for some in (shown, found))
    return (
        (markup.table(title, head, lines) if shown else "")
        + markup.folded("All limits, the worst case of each board", head, all_)
        + markup.explained("What the signs mean", rows.LEGEND)
    )


def _nearest(found: Sequence[rows.LimitRow]) -> list[rows.LimitRow]:
    limited = [row for row in found if row.blocking and row.share is not None]
    return sorted(limited, key=lambda row: -(row.share or 0.0))[:NEAREST_SHOWN]


def _limit_cells(row: rows.LimitRow) -> Iterable[str]:
    yield row.words if row.blocking else f"{row.words} (advice)"
    yield row.limit.replace(" ", "\u00a0")  # a phone breaks no unit from its number
    yield "–" if row.share is None else f"{row.share * 100:,.0f} %"
    yield str(row.cases)
    for cell in row.cells:
        if cell.broken:
            yield markup.bold(f"{cell.text} ✗", "bad" if row.blocking else "unsure")
        else:
            yield markup.bold(f"{cell.text} ?", "unsure") if cell.marginal else cell.text


def _broken(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    lines = [line for run in runs for line in compared.blocked_lines(run.verdict)]
    lines += [
        _linked(ways, item, line)
        for run, ways in zip(runs, links, strict=True)
        for item, line in rows.broken_cases(run.verdict)
    ]
    return markup.items("What broke", lines)


def _traces(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    """Return what the schedulers' traces say; each line leads to its case, picture and trace."""
    lines = []
    for run, ways in zip(runs, links, strict=True):
        for note in run.traces:
            files = [(note.picture, "picture"), (note.perfetto, "trace for ui.perfetto.dev")]
            more = [
                markup.link(f"runs/{run.run_id}/{file}", text)
                for file, text in files
                if file and (run.path / file).is_file()
            ]
            case = markup.link(ways.get((note.board, note.case_id), ""), note.text)
            lines.append(markup.Markup(" · ".join(map(markup.safe, [case, *more]))))
    return markup.items("Scheduler traces", lines)


def _losses(runs: Sequence[ShownRun], links: Sequence[_Links], *, planted: bool) -> str:
    """Return who owns the messages that were lost; each line leads to its case, where the ledger is.

    What a case loses on purpose is folded.
    """
    lines = [
        markup.link(ways.get((note.board, note.case_id), ""), note.text)
        for run, ways in zip(runs, links, strict=True)
        for note in run.losses
        if note.planted == planted
    ]
    return (
        markup.listed("Lost messages on purpose", lines) if planted else markup.items("Lost messages", lines)
    )


def _faults(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    lines = [
        _linked(ways, fault, f"{fault.owner}{f' on {fault.board}' if fault.board else ''}: {fault.sentence}")
        for run, ways in zip(runs, links, strict=True)
        for fault in run.verdict.faults
    ]
    return markup.items("Faults", lines)


def _not_run(runs: Sequence[ShownRun]) -> str:
    split = [split_not_run(run.verdict) for run in runs]
    missing = [line for found, _ in split for line in _reasons(found)]
    ruled_out = [line for _, found in split for line in _reasons(found)]
    return markup.items("Not run", missing) + markup.listed(
        "Ruled out by limits, chip or labels of a board, or by the rack", ruled_out
    )


def _reasons(not_run: Sequence[NotRun]) -> list[str]:
    return [
        f"{count} case{'' if count == 1 else 's'} on {', '.join(boards)}: {reason}"
        for reason, count, boards in not_run_groups(not_run)
    ]


def _worth_knowing(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    """Return what went wrong in reporting, then what the gate warns of, a line a metric."""
    reporting = [line for run in runs for line in run.run.reported.warnings]
    general = [line for run in runs for line in rows.general_warnings(run.verdict)]
    noted = [
        (line, [_linked(ways, item, item.sentence) for item in items])
        for run, ways in zip(runs, links, strict=True)
        for line, items in rows.notable_metrics(run.verdict)
    ]
    metrics = [markup.details(line, sentences) for line, sentences in noted]
    return markup.items("Went wrong in reporting", reporting) + markup.listed(
        "Worth knowing", [*general, *metrics]
    )


def _facts(run: ShownRun, raw: Sequence[str]) -> str:
    links = [
        f'<a href="runs/{escape(run.run_id)}/{name}">{name}</a>' for name in raw if (run.path / name).exists()
    ]
    address = str(run.line["url"])
    if address.startswith("https://"):
        links.append(f'<a href="{escape(address)}">workflow run</a>')
    return f"<h2>Run {escape(run.run_id)}</h2><p>{' · '.join(links)}</p>"
