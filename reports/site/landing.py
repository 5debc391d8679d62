# SPDX-License-Identifier: Apache-2.0
"""The first page: the verdict, each board's part in it, and the ways on from there.

What changed in the nights, on the first page: who did it, what, since when, on which boards.

The comparisons of a run on the first page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hil.gate.words.banner import banner_of, commit_words, noted_changes, open_words
from hil.model import ComparedSeries, Fault, NotRun, SeriesVerdict
from hil.reports import compared, rows
from hil.reports import page as markup
from hil.reports.boards import BoardCases, boards_of, not_run_groups, remarks, split_not_run
from hil.reports.page import frame
from hil.reports.site.runs import ShownRun, decisive, title_of
from hil.reports.studies.build import StoredStudy, page_of, stored_studies
from hil.reports.trend.happenings import changes_beside


def comparisons(run: ShownRun) -> str:
    """Return the comparisons that block, what is behind those that did not pass, and advice folded."""
    found = compared.ranked(run.verdict)
    if not found:
        return ""
    lines = [_row("td", _cells(item)) for item in found if item.blocking]
    kinds = ", ".join(sorted({item.kind for item in found}))
    title = f"{compared.heading(found)}, rack {run.line['rack']} ({kinds})"
    head = _row("th", compared.HEAD)
    advice = [_row("td", compared.cells(item)) for item in found if not item.blocking]
    behind = [
        markup.details(compared.line(item), compared.details(item)) for item in compared.notable(run.verdict)
    ]
    return (
        (markup.table(title, head, lines) if lines else "")
        + f'<p class="soft">{escape(compared.legend(found))}</p>'
        + markup.items("Behind what did not simply pass", behind)
        + (markup.folded(f"{len(advice)} comparisons of advice", head, advice) if advice else "")
    )


def _row(tag: str, cells: Iterable[str]) -> str:
    """Return a row: sign, metric and case stand left."""
    return markup.row(tag, cells, names=compared.HEAD.index("case") + 1)


def _cells(item: ComparedSeries) -> list[str]:
    tones = {"regressed": "bad", "improved": "good", "pass": ""}
    first, *rest = (cell.removesuffix(compared.EARLY_MARK) for cell in compared.cells(item))
    tone = tones.get(item.outcome, "unsure")
    return [markup.bold(first, tone) if tone else first, *rest]


MOST_SHOWN = 6
BOARDS_NAMED = 3
_COMMIT_DIGITS = 7
_CAUSES = {"firmware": "Firmware", "environment": "Environment", "board": "Board"}
_NO_NIGHTS = (
    "Change points come from nightly runs, of which the history has none yet: docs/operate/nightly.md says "
    "how to measure them."
)


def changed(
    events: Sequence[Mapping[str, Any]], *, nights: int = 0, trend_page: str = "trend/index.html"
) -> str:
    """Return the events of trend.json as HTML, the first MOST_SHOWN of them, in their order.

    ``nights`` is how many nights were judged. Each event leads to ``trend_page``, its index in the address.
    """
    if not events:
        return f'<p class="soft">{escape(_nothing(nights))}</p>'
    lines = [_event(event, f"{trend_page}#event={index}") for index, event in enumerate(events[:MOST_SHOWN])]
    more = len(events) - MOST_SHOWN
    if more > 0:
        link = markup.link(trend_page, f"and {more} more, in the trend")
        lines.append(f'<li class="soft">{markup.safe(link)}</li>')
    return f'<h2>What changed</h2><ul class="events">{"".join(lines)}</ul>'


def _nothing(nights: int) -> str:
    if not nights:
        return _NO_NIGHTS
    return f"No change point in {nights} {'night' if nights == 1 else 'nights'}."


def _event(event: Mapping[str, Any], address: str) -> str:
    tone, tag = _tag(event)
    facts = " · ".join(f"<span>{escape(fact)}</span>" for fact in _changed_facts(event))
    return (
        f'<li><b class="tag {tone}">{escape(tag)}</b><div>'
        f'<a href="{escape(address)}">{escape(str(event["headline"]))}</a>'
        f'<p class="soft">{facts}</p></div></li>'
    )


def _tag(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return tone and words of a tag; its sign and its words say what its colour says."""
    cause, effect = str(event["cause"]), str(event["effect"])
    if cause == "unclear" or cause not in _CAUSES:
        return "unsure", "Unclear ?"
    name = _CAUSES[cause]
    if effect == "better":
        return "good", f"{name} ↑ improved"
    tone = "bad" if cause == "firmware" else "unsure"
    words = {"worse": "✗ worse", "mixed": "± mixed"}.get(effect, "? changed")
    return ("unsure" if words.startswith("?") else tone), f"{name} {words}"


def _changed_facts(event: Mapping[str, Any]) -> list[str]:
    """Return since when, between which commits, by how much and where."""
    facts = [f"since {event['night']}, {open_words(event)}", *filter(None, [commit_words(event)])]
    if event["good"] and event["bad"]:
        facts.append(f"commits {str(event['good'])[:_COMMIT_DIGITS]}..{str(event['bad'])[:_COMMIT_DIGITS]}")
    of_ratio = " beside the reference" if event["of_ratio"] else ""
    low, high = _signed(event["low"]), _signed(event["high"])
    series = event.get("series", event.get("series_ids", ()))
    surest = "surest series " if len(series) > 1 else ""
    facts.append(f"{surest}{_signed(event['change'])} % [{low}, {high}]{of_ratio}")
    boards = [str(board) for board in event["boards"]]
    rest = len(boards) - BOARDS_NAMED
    facts.append(", ".join(boards[:BOARDS_NAMED]) + (f" and {rest} more" if rest > 0 else ""))
    return facts


def _signed(ratio: float) -> str:
    """Return per cent with a sign, without its unit: "+12.3", "−4.0"."""
    return f"{100 * ratio:+,.1f}".replace("-", "−")


def render_landing(
    runs: Sequence[ShownRun],
    *,
    past: int,
    raw: Sequence[str],
    racks: Sequence[str] = (),
    events: Sequence[Mapping[str, Any]] | None = None,
    nights: int = 0,
) -> str:
    """Return the page, the newest run first. ``past`` is how many runs the trend shows, ``raw`` names the
    files of each run that lie in ``runs/<run-id>/``, ``racks`` says how each rack is. ``events`` are those of
    trend.json, of ``nights`` nights; None where no history was looked at.
    """
    runs = sorted(runs, key=lambda run: str(run.line["started_utc"]), reverse=True)
    title = title_of(runs)
    told = [remark for run in runs for remark in remarks(run.info, run.verdict)]
    links = [_links(run) for run in runs]
    body = [
        f"<h1>{escape(title)}</h1>",
        *(_verdict(run, events or ()) for run in sorted(runs, key=lambda run: run is not decisive(runs))),
        "" if events is None else changed(events, nights=nights),
        *(f'<p class="remark">{escape(remark)}</p>' for remark in dict.fromkeys(told)),
        _ways(runs, past, racks),
        _broken(runs, links),
        _traces(runs, links),
        _losses(runs, links),
        _faults(runs, links),
        *map(comparisons, runs),
        _boards(runs),
        *map(_limits, runs),
        f'<p class="soft">{escape(rows.LEGEND)}</p>' if any(run.verdict.series for run in runs) else "",
        _not_run(runs),
        _worth_knowing(runs, links),
        *(_facts(run, raw) for run in runs),
    ]
    return frame(title, body)


_Links = Mapping[tuple[str, str], str]


def _links(run: ShownRun) -> _Links:
    """Return the address of each (board, case id) in the test report; none where it cannot be known."""
    return {key: f"tests/index.html#{found}" for key, found in run.test_ids.items()}


def _linked(links: _Links, item: SeriesVerdict | Fault, text: str) -> str:
    return markup.link(links.get((item.board, item.case_id), ""), text)


def _verdict(run: ShownRun, events: Sequence[Mapping[str, Any]]) -> str:
    changes = changes_beside(events, run.info) or noted_changes(run.info)
    said = banner_of(run.verdict, changes)
    tone = said.tone.replace("open", "unsure")
    parts = [*_whereabouts(run), f"suite {run.line['suite']}", f"run {run.run_id}"]
    return (
        f'<section class="verdict {tone}"><strong>{escape(said.title)}</strong>'
        f"<p>{escape(said.sentence)}</p>"
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


def _ways(runs: Sequence[ShownRun], past: int, racks: Sequence[str]) -> str:
    boards = [board for run in runs for board in boards_of(run.info, run.verdict)]
    planned = sum(board.planned for board in boards)
    ruled_out = sum(len(board.ruled_out) for board in boards)
    cases = f"{planned} case{'' if planned == 1 else 's'}{f' and {ruled_out} ruled out' if ruled_out else ''}"
    shown = "this run; the next ones join it" if past == 1 else f"{past} runs"
    return (
        '<div class="ways">'
        f'<a href="tests/index.html"><b>Test report →</b>{cases}: figures, charts, console, history</a>'
        f'<a href="trend/index.html"><b>Trend →</b>p50, p95, p99 against their limits over {shown}</a>'
        f"{_racks(racks)}{''.join(map(_studies, runs))}</div>"
    )


def _racks(racks: Sequence[str]) -> str:
    """Return the way to the racks' health, with how each one is."""
    if not racks:
        return ""
    return f'<a href="rack/index.html"><b>Racks →</b>{escape("; ".join(racks))}</a>'


def _studies(run: ShownRun) -> str:
    """Return the ways to the published studies that were set beside a run."""
    return "".join(_study(run, found) for found in stored_studies(run.path))


def _study(run: ShownRun, found: StoredStudy) -> str:
    address = f"runs/{escape(run.run_id)}/{escape(page_of(found.study))}"
    kinds = ", ".join(found.kinds)
    text = f"published values beside those of this run ({kinds}): {' · '.join(_whereabouts(run))}"
    return f'<a href="{address}"><b>Study {escape(found.study)} →</b>{escape(text)}</a>'


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
    lines = [_board_row(run, board) for run in runs for board in boards_of(run.info, run.verdict)]
    return markup.table("Boards", markup.row("th", _BOARD_HEAD), lines) if lines else ""


def _board_row(run: ShownRun, board: BoardCases) -> str:
    series = [item for item in run.verdict.series if item.board == board.board]
    limited = [item for item in series if item.blocking and item.limit is not None]
    marginal = sum(map(rows.is_marginal, limited))
    kept = sum(item.outcome in ("pass", "improved") for item in limited) - marginal
    cells = [
        board.place,
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


def _limits(run: ShownRun) -> str:
    """Return each limit with the worst case of every board."""
    found = rows.limit_rows(run.verdict)
    if not found:
        return ""
    kinds = {item.board: item.kind for item in run.verdict.series}
    boards = [f"{board} ({kinds[board]})" for board in rows.boards(run.verdict)]
    lines = [markup.row("td", _limit_cells(row)) for row in found]
    head = markup.row("th", ["Metric", "Limit", "Cases", *boards])
    return markup.table(f"Worst case of each limit, rack {run.line['rack']}", head, lines)


def _limit_cells(row: rows.LimitRow) -> Iterable[str]:
    yield row.name if row.blocking else f"{row.name} (advice)"
    yield row.limit
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


def _losses(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    """Return who owns the messages that were lost; each line leads to its case, where the ledger is."""
    lines = [
        markup.link(ways.get((note.board, note.case_id), ""), note.text)
        for run, ways in zip(runs, links, strict=True)
        for note in run.losses
    ]
    return markup.items("Lost messages", lines)


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
    return markup.items("Not run", missing) + markup.items(
        "Ruled out by limits, chip or labels of a board, or by the rack", ruled_out
    )


def _reasons(not_run: Sequence[NotRun]) -> list[str]:
    return [
        f"{count} case{'' if count == 1 else 's'} on {', '.join(boards)}: {reason}"
        for reason, count, boards in not_run_groups(not_run)
    ]


def _worth_knowing(runs: Sequence[ShownRun], links: Sequence[_Links]) -> str:
    """Return what went wrong in reporting, then what the gate warns of, one line a board and case."""
    reporting = [str(line) for run in runs for line in run.info.get("reporting", {}).get("warnings", [])]
    general = [line for run in runs for line in rows.general_warnings(run.verdict)]
    cases = [
        markup.details(line, sentences, _linked(ways, item, "the case in the test report"))
        for run, ways in zip(runs, links, strict=True)
        for item, line, sentences in rows.notable_cases(run.verdict)
    ]
    told = [*reporting, *general]
    return markup.items("Worth knowing", [*told, *cases], most=len(told) + markup.MOST_NAMED)


def _facts(run: ShownRun, raw: Sequence[str]) -> str:
    links = [
        f'<a href="runs/{escape(run.run_id)}/{name}">{name}</a>' for name in raw if (run.path / name).exists()
    ]
    address = str(run.line["url"])
    if address.startswith("https://"):
        links.append(f'<a href="{escape(address)}">workflow run</a>')
    return f"<h2>Run {escape(run.run_id)}</h2><p>{' · '.join(links)}</p>"
