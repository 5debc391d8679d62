# SPDX-License-Identifier: Apache-2.0
"""The figures of runs as tables: comparisons, limits, boards; and the sentence of each that did not pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hil.base.units import find_unit, format_difference, format_values
from hil.gate.words.compared import evidence
from hil.gate.words.comparisons import is_exact
from hil.history.from_run import outcome_of
from hil.model import DEFAULTS, ComparedSeries, SeriesVerdict
from hil.reports import compared, rows
from hil.reports.boards import BoardCases, boards_of
from hil.reports.names import case_name, human_metric
from hil.reports.view.marks import Code, Fixed, Line, Link, Mark, Part, Table, Tone, Words, count, listed
from hil.reports.view.source import Source

_MOST_OPEN = 3  # changes, and limits, that are read at once; the others are folded
_MOST_NEAREST = 5
_NAMED_BOARDS = 2
_WORDS = {
    "regressed": "✗ worse",
    "improved": "↑ better",
    "undecided": "? undecided",
    "no-baseline": "– not compared",
    "pass": "✓ within",
}
_LIMIT_LEGEND = "Each with the worst of its cases. " + rows.LEGEND

_Found = Sequence[tuple[Source, SeriesVerdict]]


def comparisons(runs: Sequence[Source]) -> list[Part]:
    """Return what changed or is undecided, of it the first few open; then what passed, then all else."""
    found = [item for run in runs for item in compared.ranked(run.verdict)]
    told = [item for item in found if _is_change(item) and (item.outcome == "regressed" or is_better(item))]
    changed = sorted(told, key=_by_evidence)
    worth = [*changed, *(item for item in found if item.outcome == "undecided" and item.blocking)]
    first = set(map(id, worth))  # a foreign verdict may hold thousands
    rest = [item for item in found if id(item) not in first]
    within = [item for item in rest if item.outcome == "pass"]
    others = [item for item in rest if item.outcome != "pass"]
    heading = "What changed" if changed else "Undecided"
    without = f"{count(len(others), 'comparison')} without a decision, as advice or for want of a baseline"
    return [
        *_compared("changed", heading, worth[:_MOST_OPEN], rank=1),
        *_compared("changed", _counted(worth[_MOST_OPEN:]), worth[_MOST_OPEN:], rank=1, folded=True),
        *_compared(
            "others", f"{count(len(within), 'comparison')} within the tolerance", within, rank=6, folded=True
        ),
        *_compared("others", without, others, rank=7, folded=True),
    ]


def _is_change(item: ComparedSeries) -> bool:
    """Whether a comparison is with what was before: how far a reference lies away is no news as advice."""
    return item.blocking or item.role != "reference"


def _by_evidence(item: ComparedSeries) -> tuple[bool, bool, float, str]:
    """Order what fails a run first, then what else grew worse, then what improved; the strongest first.

    So the first row is the one that the verdict's words name.
    """
    return not compared.is_blocked(item), is_better(item), -abs(evidence(item)), item.series_id


def _counted(found: Sequence[ComparedSeries]) -> str:
    """Return "1 more worse, 2 better, 8 undecided"."""
    words = {"regressed": "worse", "undecided": "undecided"}
    counts = Counter("better" if is_better(item) else words[item.outcome] for item in found)
    return ", ".join(f"{number} {word}" for word, number in counts.items()).replace(" ", " more ", 1)


def _compared(
    name: str, heading: str, found: Sequence[ComparedSeries], *, rank: int, folded: bool = False
) -> Iterator[Part]:
    if found:
        title = heading if folded else f"{heading}{_Places(found).common}"
        yield Part(name, title, compared_table(found), rank, "comparison", folded)


def compared_table(found: Sequence[ComparedSeries]) -> Table:
    """Return comparisons as a table: values of both, the change with its interval, what decides."""
    head = ("", "figure", "boards", f"{found[0].role} → head", "change [interval]", "rule")
    places = _Places(found)
    return Table(head, tuple(_compared_row(item, places) for item in found))


class _Places:
    """What is the same in all rows of a table stands once, above it: target and kind."""

    def __init__(self, items: Sequence[ComparedSeries | SeriesVerdict]) -> None:
        self._targets = {item.target for item in items}
        self._kinds = {item.kind for item in items}

    @property
    def common(self) -> str:
        """Return " on esp32"; "" where the rows differ."""
        return f" on {min(self._targets)}" if len(self._targets) == 1 else ""

    def of(self, item: ComparedSeries | SeriesVerdict) -> str:
        """Return " esp32 (physical)", as far as the rows differ in it."""
        target = f" {item.target}" if len(self._targets) > 1 else ""
        return f"{target} ({item.kind})" if len(self._kinds) > 1 else target


def is_better(item: ComparedSeries) -> bool:
    """Whether a comparison shows an improvement.

    A pass does where its own test leaves no change but one for the better, and that beyond the smallest that
    counts: most improvements pass before their interval would show them.
    """
    if item.outcome == "improved":
        return True
    if item.outcome != "pass" or item.pass_bound is None:
        return False
    gain = -item.pass_bound if item.direction == "lower" else item.pass_bound
    return gain > (item.min_effect or 0.0)


def _compared_row(item: ComparedSeries, places: _Places) -> tuple[Words, ...]:
    better = is_better(item)
    word = (_WORDS["improved"] if better else _WORDS[item.outcome]) + ("" if item.blocking else ", advice")
    tone: Tone = "good" if better else "bad" if item.outcome == "regressed" else ""
    tone = tone if item.blocking else ""
    bound = compared.bound(item)
    return (
        Fixed(word, tone),
        _figure_of(item),
        (*names_of(item.boards), places.of(item)),
        Fixed(_both(item)),
        (Fixed(compared.change(item), tone), *_bracketed(bound)),
        listed(Fixed(one) for one in _rule(item).split(", ")),  # a line may end between the two
    )


def _bracketed(bound: str) -> tuple[Mark, ...]:
    return () if bound == "–" else (" [", Fixed(bound), "]")


def _rule(item: ComparedSeries) -> str:
    """Return what decides: "blocks from 3 %, passes to 10 %", as a change is proven or ruled out."""
    tolerance = compared.size(item, item.tolerance)
    if item.tolerance is None:
        return "–"
    if is_exact(item):
        return f"blocks beyond {tolerance}" if item.blocking else f"advice beyond {tolerance}"
    smallest = compared.size(item, item.min_effect or 0.0)
    return f"{'blocks' if item.blocking else 'advice'} from {smallest}, passes to {tolerance}"


def _figure_of(item: ComparedSeries | SeriesVerdict) -> Words:
    """Return the metric in words, and the case where it is not the bench's usual one."""
    if item.case_label in ("", DEFAULTS):
        return human_metric(item)
    return f"{human_metric(item)} ", Code(case_name(item))


def _both(item: ComparedSeries) -> str:
    """Return "7.02 → 8.41 ms", "–" where one of the two is missing."""
    if item.candidate_value is None or item.other_value is None:
        return "–"
    head, other = format_values([item.candidate_value, item.other_value], find_unit(item.unit))
    return f"{other} → {head}"


def names_of(boards: Sequence[str]) -> tuple[Mark, ...]:
    """Return the names of boards, or of many their number."""
    if len(boards) > _NAMED_BOARDS:
        return (f"{len(boards)} boards",)
    return listed(map(Code, boards)) or ("–",)


def breaches(runs: Sequence[Source]) -> list[Part]:
    """Return the limits that are broken, then those that are exceeded without proof: the first few open."""
    found = [(run, item) for run in runs for item in run.verdict.series]
    broken = sorted((one for one in found if rows.is_blocked(one[1])), key=lambda one: -rows.excess(one[1]))
    exceeded = [one for one in found if one[1].blocking and rows.is_marginal(one[1])]
    return [
        *_breached("Broken limits", "broken limit", broken, rank=0),
        *_breached("Limits exceeded without proof", "exceeded limit", exceeded, rank=2),
    ]


def _breached(heading: str, noun: str, found: _Found, *, rank: int) -> Iterator[Part]:
    for some, folded in ((found[:_MOST_OPEN], False), (found[_MOST_OPEN:], True)):
        if some:
            places = _Places([item for _, item in some])
            head = ("", "figure", "board", "measured", "limit", "beyond it by")
            title = count(len(some), f"more {noun}") if folded else f"{heading}{places.common}"
            lines = tuple(_breach_row(run, item, places) for run, item in some)
            yield Part("breaches", title, Table(head, lines), rank, noun, folded)


def _breach_row(run: Source, item: SeriesVerdict, places: _Places) -> tuple[Words, ...]:
    at_least = "≥ " if item.at_least else ""
    beyond = "–"
    if item.value is not None and item.limit is not None:
        beyond = at_least + format_difference(abs(item.value - item.limit), find_unit(item.unit))
    return (
        Fixed("? exceeded") if rows.is_marginal(item) else Fixed("✗ broken", "bad"),
        Link(_figure_of(item), run.test(item.board, item.case_id)),
        (Code(item.board), places.of(item)),
        Fixed(at_least + rows.quantity(item, item.value), "open" if rows.is_marginal(item) else "bad"),
        Fixed(rows.quantity(item, item.limit)),
        Fixed(beyond),
    )


def undecided(runs: Sequence[Source]) -> list[Line]:
    """Return for each metric with a limit that came to no decision a line with the reasons."""
    return [
        Line(Link(words, run.test(items[0].board, items[0].case_id)))
        for run in runs
        for words, items in by_metric(
            item for item in rows.undecided(run.verdict.series) if not rows.is_marginal(item)
        )
    ]


def by_metric(series: Iterable[SeriesVerdict]) -> Iterator[tuple[Words, list[SeriesVerdict]]]:
    """Yield for each metric a line and its series, the worst first."""
    groups: dict[str, list[SeriesVerdict]] = {}
    for item in series:
        groups.setdefault(human_metric(item), []).append(item)
    for name, items in groups.items():
        items.sort(key=lambda item: (-(rows.limit_share(item) or 0.0), item.series_id))
        yield _in_a_line(name, items), items


def _in_a_line(name: str, items: Sequence[SeriesVerdict]) -> Words:
    """Return "publish latency p95: 3 cases on v1, v2, at worst 143 ms, limit 25 ms: too few samples, …"."""
    worst = items[0]
    cases = count(len({item.case_id for item in items}), "case")
    limit = "" if worst.limit is None else f", limit {rows.quantity(worst, worst.limit)}"
    reasons = list(dict.fromkeys(item.reason for item in items if item.reason))
    others = f"; {count(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
    value = f"{'≥ ' * worst.at_least}{rows.quantity(worst, worst.value)}{limit}"
    boards = names_of(sorted({item.board for item in items}))
    why = f": {reasons[0]}{others}" if reasons else ""
    return (f"{name}: {cases} on ", *boards, f", at worst {value}{why}")


def limits(runs: Sequence[Source]) -> Iterator[Part]:
    """Yield the limits of each rack, of whatever runs: the nearest where none is exceeded, and all folded."""
    racks: dict[tuple[str, str], list[SeriesVerdict]] = {}
    for run in runs:
        racks.setdefault((run.product, run.rack), []).extend(run.verdict.series)
    for (_, rack), series in racks.items():
        found = rows.limit_rows(series)
        place = f", rack {rack}" if rack else ""
        calm = not any(row.blocking and (row.broken or row.marginal) for row in found)
        nearest = [row for row in found if row.blocking and row.share is not None][: _MOST_NEAREST * calm]
        yield from _limit_table(f"Nearest to their limits{place}", nearest, folded=False)
        yield from _limit_table(f"{count(len(found), 'limit')}{place}", found, folded=True)


def _limit_table(heading: str, found: Sequence[rows.LimitRow], *, folded: bool) -> Iterator[Part]:
    if found:
        head = ("", "figure", "on", "limit", "used", "cases", "worst")
        table = Table(head, tuple(map(_limit_row, found)))
        yield Part("limits", heading, table, 8, "limit", folded, _LIMIT_LEGEND if folded else "")


def _limit_row(row: rows.LimitRow) -> tuple[Words, ...]:
    item = row.worst
    tone: Tone = "open" if row.marginal or (row.broken and not row.blocking) else "bad" if row.broken else ""
    value = "≥ " * item.at_least + rows.quantity(item, item.value)
    return (
        Fixed(rows.sign(item), tone),
        human_metric(item) + ("" if row.blocking else " (advice)"),
        (Code(item.board), f" ({item.kind})"),
        Fixed(rows.limit_words(item)),
        "–" if row.share is None else Fixed(f"{row.share * 100:,.0f} %"),
        str(row.cases),
        Fixed(value, tone),
    )


def sentences(runs: Sequence[Source]) -> list[Line]:
    """Return the verdict's sentence of each figure that did not simply pass, with what stands behind it."""
    found = [
        Line(Link(item.sentence, run.test(item.board, item.case_id)))
        for run in runs
        for item in (*rows.by_severity(run.verdict.series), *rows.undecided(run.verdict.series))
    ]
    ranked = [item for run in runs for item in compared.ranked(run.verdict)]
    told = [item for item in ranked if item.outcome == "regressed" or item.blocking]
    return [
        *found,
        *(Line(item.sentence, compared.effects(item)) for item in told if compared.is_notable(item)),
    ]


_BOARD_HEAD = ("board", "target", "cases", "measured", "faulted", "not run")
_BOARD_HEAD_LIMITS = ("limits kept", "broken", "exceeded, not provably", "undecided")


def boards(runs: Sequence[Source]) -> Iterator[Part]:
    """Yield each board's part, folded where every one measured all that was planned and broke nothing."""
    found = [(run, *both) for run in runs for both in _boards_of(run)]
    if not found:
        return
    mixed = len({board.kind for _, board, _ in found}) > 1
    lines = tuple(_board_row(board, series, mixed=mixed) for _, board, series in found)
    calm = all(not board.faulted and not board.not_run for _, board, _ in found)
    calm = calm and all(run.verdict.exit_code == 0 for run in runs)
    number = len({(run.rack, board.board) for run, board, _ in found})
    title = f"{count(number, 'board')}, all that was planned measured" if calm else "Boards"
    table = Table((*_BOARD_HEAD, *_BOARD_HEAD_LIMITS), lines, left=2)
    yield Part("boards", title, table, 8, "board", folded=calm)


def _boards_of(run: Source) -> Iterator[tuple[BoardCases, Sequence[SeriesVerdict]]]:
    series: dict[str, list[SeriesVerdict]] = {}
    for item in run.verdict.series:
        series.setdefault(item.board, []).append(item)
    for board in boards_of(run.info, run.verdict):
        yield board, series.get(board.board, ())


def _board_row(board: BoardCases, series: Sequence[SeriesVerdict], *, mixed: bool) -> tuple[Words, ...]:
    limited = [item for item in series if item.blocking and item.limit is not None]
    marginal = sum(map(rows.is_marginal, limited))
    kept = sum(item.outcome in ("pass", "improved") for item in limited) - marginal
    return (
        (Code(board.board), f" ({board.kind})" if mixed and board.kind else ""),
        Code(board.target) if board.target else "–",
        str(board.planned),
        str(len(board.measured)),
        _unless_zero(len(board.faulted), "bad"),
        _unless_zero(len(board.not_run), "open"),
        str(kept),
        _unless_zero(sum(map(rows.is_blocked, series)), "bad"),
        _unless_zero(marginal, "open"),
        _unless_zero(sum(item.outcome == "undecided" for item in limited), "open"),
    )


def _unless_zero(number: int, tone: Tone) -> Fixed:
    return Fixed(str(number), tone if number else "")


_SERIES_HEAD = ("limit", "samples", "boots", "clock")


def series_table(series: Sequence[SeriesVerdict]) -> Table:
    """Return every series with its board and case."""
    head = ("", "board", "case", "metric", "value", *_SERIES_HEAD)
    lines = (
        _series_row(item, (Code(item.board), f" ({item.kind})"), Code(case_name(item)), Code(item.metric))
        for item in series
    )
    return Table(head, tuple(lines), len(head))


def case_table(series: Sequence[SeriesVerdict]) -> Table:
    """Return the series of one case on one board, the worst first."""
    head = ("", "metric", f"value [interval], {series[0].kind}", *_SERIES_HEAD)
    ranked = sorted(series, key=lambda item: (not item.blocking, compared.ORDER.index(outcome_of(item))))
    return Table(head, tuple(_series_row(item, human_metric(item)) for item in ranked), 2)


def _series_row(item: SeriesVerdict, *names: Words) -> tuple[Words, ...]:
    return (
        rows.sign(item) + ("" if item.blocking else " advice"),
        *names,
        rows.interval(item),
        rows.quantity(item, item.limit),
        rows.samples(item),
        str(item.boots),
        Code(item.clock) if item.clock else "",
    )
