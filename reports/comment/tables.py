# SPDX-License-Identifier: Apache-2.0
"""The tables of a page: comparisons, broken limits, faults, what was not run. Every cell is made harmless.

A page within a number of characters: cut between rows, with a count of what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hil.base.units import find_unit, format_difference, format_values
from hil.base.untrusted import code, markdown
from hil.gate.words.comparisons import is_exact
from hil.model import DEFAULTS, ComparedSeries, Fault, NotRun, SeriesVerdict
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups
from hil.reports.comment.facts import LegFacts
from hil.reports.names import case_name, human_metric


@dataclass(frozen=True)
class Block:
    """A part of a page: ``rows`` between ``head`` and ``tail``. The lower ``rank``, the later it is cut.

    ``noun`` is what a row is; ``title`` opens what is folded, "" where it is open.
    """

    head: str
    rows: tuple[str, ...] = ()
    rank: int = 0
    noun: str = "row"
    title: str = ""

    def written(self, kept: int) -> str:
        """Return the block with its first rows only."""
        left = len(self.rows) - kept
        nouns = self.noun if left == 1 else f"{self.noun}s"
        more = f"… and {left:,} more {nouns}, left out here for their length." if left else ""
        body = "\n".join(filter(None, (self.head, *self.rows[:kept])))
        body = "\n\n".join(filter(None, (body, more)))
        return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>" if self.title else body


def fit(blocks: Sequence[Block], most: int) -> str:
    """Return the page with as many rows as fit ``most`` characters, those of low ranks first."""
    kept = [0] * len(blocks)
    room = most - len(_joined(blocks, kept))
    for n in sorted(range(len(blocks)), key=lambda one: blocks[one].rank):
        for row in blocks[n].rows:
            if len(row) + 1 > room:
                break
            room -= len(row) + 1
            kept[n] += 1
    return _joined(blocks, kept)


def _joined(blocks: Sequence[Block], kept: Sequence[int]) -> str:
    return "\n\n".join(block.written(count) for block, count in zip(blocks, kept, strict=True)) + "\n"


_FIGURE = 60  # characters
_NAMED_BOARDS = 2
_MOST_OF_A_FAULT = 1_000
_NO_BREAK = "\u00a0"  # a browser copies it as a space
_WORDS = {
    "regressed": "✗ worse",
    "improved": "↑ better",
    "undecided": "? undecided",
    "no-baseline": "– not compared",
    "pass": "✓ within",
}


def comparisons(heading: str, items: Sequence[ComparedSeries], *, rank: int, title: str = "") -> Block:
    """Return comparisons as a table: values of both, the change with its interval, what is allowed."""
    other, places = items[0].role, _Places(items)
    names = ("", "figure", "boards", f"{other} → head", "change [interval]", "rule")
    head = _head(heading and f"{heading}{places.common}", names, right_from=3)
    rows_ = tuple(_compared_row(item, places) for item in items)
    return Block(head, rows_, rank, "comparison", title)


class _Places:
    """What is the same in all rows of a table stands once, above it: target and kind."""

    def __init__(self, items: Sequence[ComparedSeries | SeriesVerdict]) -> None:
        self._targets = {item.target for item in items}
        self._kinds = {item.kind for item in items}

    @property
    def common(self) -> str:
        """Return " on esp32"; "" where the rows differ."""
        return f" on {markdown(min(self._targets), 40)}" if len(self._targets) == 1 else ""

    def of(self, item: ComparedSeries | SeriesVerdict) -> str:
        """Return " esp32 (physical)", as far as the rows differ in it."""
        target = f" {markdown(item.target, 40)}" if len(self._targets) > 1 else ""
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


def _compared_row(item: ComparedSeries, places: _Places) -> str:
    better = is_better(item)
    word = (_WORDS["improved"] if better else _WORDS[item.outcome]) + ("" if item.blocking else ", advice")
    strong = item.blocking and (better or item.outcome == "regressed")
    change = _figure(compared.change(item, item.unit, relative=item.relative))
    bound = compared.bound(item)
    return _row(
        f"**{_fixed(word)}**" if strong else _fixed(word),
        _figure_of(item),
        f"{_boards(item.boards)}{places.of(item)}",
        _figure(_both(item)),
        (f"**{change}**" if strong else change) + ("" if bound == "–" else f" &#91;{_figure(bound)}&#93;"),
        ", ".join(map(_figure, _rule(item).split(", "))),  # a line may end between the two
    )


def _rule(item: ComparedSeries) -> str:
    """Return what decides: "blocks from 3 %, passes to 10 %", as a change is proven or ruled out."""
    tolerance = compared.size(item, item.tolerance)
    if item.tolerance is None:
        return "–"
    if is_exact(item):
        return f"blocks beyond {tolerance}" if item.blocking else f"advice beyond {tolerance}"
    smallest = compared.size(item, item.min_effect or 0.0)
    return f"{'blocks' if item.blocking else 'advice'} from {smallest}, passes to {tolerance}"


def _figure_of(item: ComparedSeries | SeriesVerdict) -> str:
    """Return the metric in words, and the case where it is not the bench's usual one."""
    case = "" if item.case_label in ("", DEFAULTS) else f" {code(case_name(item))}"
    return f"{markdown(human_metric(item), 80)}{case}"


def _figure(text: str) -> str:
    """Return a figure with its unit, which no line end parts from it."""
    return _fixed(markdown(text, _FIGURE))


def _fixed(text: str) -> str:
    return text.replace(" ", _NO_BREAK)


def _both(item: ComparedSeries) -> str:
    """Return "7.02 → 8.41 ms", "–" where one of the two is missing."""
    if item.candidate_value is None or item.other_value is None:
        return "–"
    head, other = format_values([item.candidate_value, item.other_value], find_unit(item.unit))
    return f"{other} → {head}"


def _boards(boards: Sequence[str]) -> str:
    """Return their names, or of many their number."""
    if len(boards) > _NAMED_BOARDS:
        return f"{len(boards)} boards"
    return ", ".join(code(board) for board in boards) or "–"


def limits(heading: str, noun: str, items: Sequence[SeriesVerdict], *, rank: int, title: str = "") -> Block:
    """Return series beyond a limit that blocks, as a table: broken, or exceeded but not provably."""
    names, places = ("", "figure", "board", "measured", "limit", "beyond it by"), _Places(items)
    body = tuple(_limit_row(item, places) for item in items)
    head = _head(heading and f"{heading}{places.common}", names, right_from=3)
    return Block(head, body, rank, noun, title)


def _limit_row(item: SeriesVerdict, places: _Places) -> str:
    at_least = "≥ " if item.at_least else ""
    beyond = "–"
    if item.value is not None and item.limit is not None:
        beyond = at_least + format_difference(abs(item.value - item.limit), find_unit(item.unit))
    return _row(
        _fixed("? exceeded") if rows.is_marginal(item) else f"**{_fixed('✗ broken')}**",
        _figure_of(item),
        f"{code(item.board)}{places.of(item)}",
        f"**{_figure(at_least + rows.quantity(item, item.value))}**",
        _figure(rows.quantity(item, item.limit)),
        _figure(beyond),
    )


def open_legs(legs: Sequence[LegFacts], *, rank: int) -> Block:
    """Return the sentences of legs without a decision, which say what would decide them."""
    lines = tuple(f"- {code(leg.name)}: {markdown(leg.sentence)}" for leg in legs)
    return Block(_title("What is not decided"), lines, rank, "leg")


def faults(items: Sequence[Fault], sentences: Sequence[str], *, rank: int) -> Block:
    """Return what went wrong besides figures, a line each."""
    lines = [f"- {markdown(sentence, _MOST_OF_A_FAULT)}" for sentence in sentences]  # the way out comes last
    for item in items:
        place = f" on {code(item.board)}" if item.board else ""
        lines.append(f"- **{markdown(item.owner, 40)}**{place}: {markdown(item.sentence)}")
    return Block(_title("What went wrong"), tuple(dict.fromkeys(lines)), rank, "fault")


def not_run(legs: Iterable[LegFacts], *, rank: int, folded: bool) -> Block | None:
    """Return what was not measured and why, grouped by reason; None where all was."""
    lines = [line for leg in legs for line in _not_run_lines(leg)]
    if not lines:
        return None
    title = "What was not run, and why"
    return Block("" if folded else _title(title), tuple(lines), rank, "reason", title if folded else "")


def _not_run_lines(leg: LegFacts) -> Iterator[str]:
    if leg.reason:
        yield f"- leg {code(leg.name)}: {markdown(leg.reason)}"
    missing: Sequence[NotRun] = [one for one in leg.verdict.not_run if one.expected] if leg.verdict else ()
    for reason, count, boards in not_run_groups(missing):
        cases = "1 case" if count == 1 else f"{count} cases"
        yield f"- {cases} on {_boards(boards)} (leg {code(leg.name)}): {markdown(reason)}"


def legs_table(legs: Sequence[LegFacts], said: str, *, rank: int, title: str = "") -> Block:
    """Return one line a leg; what the page has ``said`` already stands there and not here."""
    kinds = {board.rpartition(" (")[2] for leg in legs for board in leg.boards}
    names = {
        leg.name: [board.rpartition(" (")[0] if len(kinds) == 1 else board for board in leg.boards]
        for leg in legs
    }
    lines = tuple(
        _row(
            code(leg.name),
            mark(leg),
            ", ".join(code(board) for board in names[leg.name][:8]) or "–",
            "above" if said and said in leg.sentence else markdown(leg.sentence),
        )
        for leg in legs
    )
    return Block(_head("", ("leg", "verdict", "boards", ""), right_from=4), lines, rank, "leg", title)


def loosened(limits: Sequence[str], *, rank: int) -> Block:
    """Return what lets more pass than before, for an owner to accept."""
    lines = tuple(f"- {markdown(text, 300)}" for text in limits)
    return Block(_title("What this change loosens, for an owner to accept"), lines, rank, "limit")


def mark(leg: LegFacts) -> str:
    """Return "✓ pass", "✗ regressed", "? undecided, advisory", "– skipped"."""
    if leg.reason and not leg.exit_code:
        return "– skipped"
    sign = leg.sign
    standing = f", {leg.standing}" if leg.standing else ""
    if leg.is_open and sign == "✗":
        return f"✗ {markdown(leg.outcome, 40)}, accepted{standing}"
    sign = "?" if leg.is_open else sign
    return f"{sign} {markdown(leg.outcome, 40)}{standing}"


def notes(title: str, sentences: Iterable[str], *, rank: int) -> Block | None:
    """Return sentences, folded; None where there is none."""
    lines = tuple(dict.fromkeys(f"- {markdown(sentence)}" for sentence in sentences))
    return Block("", lines, rank, "remark", title) if lines else None


def _head(heading: str, names: Sequence[str], *, right_from: int) -> str:
    rules = ["---"] * min(right_from, len(names)) + ["---:"] * max(0, len(names) - right_from)
    table = f"{_row(*names)}\n{_row(*rules)}"
    return f"{_title(heading)}\n{table}" if heading else table


def _title(text: str) -> str:
    return f"**{text}**\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
