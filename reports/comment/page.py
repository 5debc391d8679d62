# SPDX-License-Identifier: Apache-2.0
"""The page: the verdict in one line, then what a person asks next, and folded what only some ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hil.base.errors import ExitCode
from hil.base.untrusted import code, markdown
from hil.ci.plan import RULER_ON_BOTH_SIDES
from hil.gate.words.compared import evidence
from hil.model import ComparedSeries, SeriesVerdict, Verdict
from hil.reports import compared, rows
from hil.reports.comment import tables
from hil.reports.comment.facts import Facts, LegFacts
from hil.reports.comment.tables import Block, fit

# by layout: GitHub takes 65,536 characters of a comment, to which a marker is added, and 1 MiB of a summary,
# whose characters have up to 4 bytes
CHARACTERS = {"comment": 60_000, "summary": 250_000}
_MOST_OPEN = 3  # changes, and limits, that are read at once; the others are folded
_MOST_REMARKS = 8  # runs of ours come to three; nothing else cuts them
_MOST_TITLE = 72  # characters of a commit's title, and of its author
_MOST_AUTHOR = 40
_MOST_OF_A_SENTENCE = 2_000  # characters


def render(facts: Facts, most: int = CHARACTERS["comment"]) -> str:
    """Return the page in at most ``most`` characters."""
    if facts.problem:
        return fit([*_no_verdict(facts), *_attempts(facts), _foot(facts)], most)
    legs = facts.legs
    told = [item for verdict in _verdicts(legs) for item in compared.ranked(verdict)]
    broken = rows.by_severity(item for verdict in _verdicts(legs) for item in verdict.series)
    changed = _in_order([item for item in told if item.outcome == "regressed" or tables.is_better(item)])
    open_ = [item for item in told if item.outcome == "undecided" and item.blocking]
    waiting = [leg for leg in legs if leg.is_open]
    noted = any(leg.sign != "✓" for leg in legs if not leg.reason)  # a pass beside what the nights left open
    quiet = facts.exit_code == ExitCode.PASS and not (changed or open_ or waiting or noted or facts.loosened)
    blocks = [*_head(facts, quiet=quiet), *_attempts(facts)]
    undecided = [leg for leg in waiting if leg.exit_code != ExitCode.FIRMWARE]
    if others := [
        leg for leg in undecided if leg.sentence not in facts.said and facts.said not in leg.sentence
    ]:
        blocks.append(tables.open_legs(others, rank=1))
    if worth := [*changed, *open_]:
        heading = "What changed" if changed else "What is not decided"
        blocks.append(tables.comparisons(heading, worth[:_MOST_OPEN], rank=1))
        blocks += _more_changes(worth[_MOST_OPEN:])
    blocks += _limits("Broken limits", "broken limit", broken, rank=0)
    exceeded = [item for verdict in _verdicts(legs) for item in verdict.series if _is_exceeded(item)]
    blocks += _limits("Limits exceeded without proof", "exceeded limit", exceeded, rank=2)
    if facts.loosened:
        blocks.append(tables.loosened(facts.loosened, rank=1))
    blocks += _what_went_wrong(facts)
    lacking = any(one.expected for verdict in _verdicts(legs) for one in verdict.not_run)
    blocks += filter(None, [tables.not_run(legs, rank=3, folded=not lacking)])
    blocks += _remarks(legs, [*told, *broken])
    blocks += _folded(facts, [item for item in told if item not in changed and item not in open_])
    return fit([*blocks, _foot(facts)], most)


def _is_exceeded(item: SeriesVerdict) -> bool:
    return item.blocking and rows.is_marginal(item)


def _limits(heading: str, noun: str, items: Sequence[SeriesVerdict], *, rank: int) -> Iterator[Block]:
    """Yield a table of the first limits, and the others folded."""
    if items:
        yield tables.limits(heading, noun, items[:_MOST_OPEN], rank=rank)
    if more := items[_MOST_OPEN:]:
        yield tables.limits("", noun, more, rank=rank, title=_count(len(more), f"more {noun}"))


def _more_changes(items: Sequence[ComparedSeries]) -> Iterator[Block]:
    if items:
        words = {"regressed": "worse", "undecided": "undecided"}
        counts = Counter("better" if tables.is_better(item) else words[item.outcome] for item in items)
        told = ", ".join(f"{count} {word}" for word, count in counts.items())
        title = told.replace(" ", " more ", 1)
        yield tables.comparisons("", items, rank=1, title=title)


def _verdicts(legs: Sequence[LegFacts]) -> list[Verdict]:
    return [leg.verdict for leg in legs if leg.verdict]


def _in_order(items: Sequence[ComparedSeries]) -> list[ComparedSeries]:
    """Return what fails the run first, then what else grew worse, then what improved.

    Of each the strongest evidence is first, so that the first row is the one that the verdict's words name.
    """
    return sorted(
        items,
        key=lambda item: (
            not compared.is_blocked(item),
            tables.is_better(item),
            -abs(evidence(item)),
            item.series_id,
        ),
    )


def _no_verdict(facts: Facts) -> Iterator[Block]:
    yield Block("### ? No verdict could be read")
    yield Block(f"{_commits(facts)}. Why: {markdown(facts.problem)}")
    yield Block(
        "This is no pass. What may be merged the check `hil-verdict` decides, "
        "which runs the pull request's own code."
    )


def _head(facts: Facts, *, quiet: bool) -> Iterator[Block]:
    """Yield the banner of the leg that decides; a pass without a change is one line."""
    measured = [leg for leg in facts.legs if not leg.reason]
    said = markdown(facts.said, _MOST_OF_A_SENTENCE)
    others = " · ".join(f"{code(leg.name)} {tables.mark(leg)}" for leg in measured)
    if not measured and quiet:
        yield Block(f"{_nothing_words(facts)} {_commits(facts)}.")
    elif quiet:
        yield Block(f"{facts.sign} **{markdown(facts.headline)}.** {said} {_commits(facts)}.")
    else:
        yield Block(f"### {facts.sign} {markdown(facts.headline, _MOST_OF_A_SENTENCE)}")
        yield from [Block(said)] * bool(said)
        yield Block(f"{_commits(facts)}{f' · {others}' if others else ''}")


def _attempts(facts: Facts) -> list[Block]:
    return [Block(markdown(facts.attempts, _MOST_OF_A_SENTENCE))] * bool(facts.attempts)


def _nothing_words(facts: Facts) -> str:
    reason = next((leg.reason for leg in facts.legs if leg.reason), "")
    return (
        f"– **Nothing had to be measured:** {markdown(reason)}." if reason else "– **Nothing was planned.**"
    )


def _commits(facts: Facts) -> str:
    """Return "c0ffee (Send at once, A. Author), 3 commits after its merge base 1b246e (diff)"."""
    words = ", ".join(
        filter(None, (markdown(facts.title, _MOST_TITLE), markdown(facts.author, _MOST_AUTHOR)))
    )
    head = f"{_commit(facts, facts.head)}{f' ({words})' if words else ''}"
    if not facts.base:
        return head
    after = f", {_count(facts.count, 'commit')} after" if facts.count else " against"
    site, commit, _ = facts.commits.rpartition("commit/")
    diff = f" ([diff]({site}compare/{facts.base}...{facts.head}))" if commit else ""
    return f"{head}{after} its merge base {_commit(facts, facts.base)}{diff}"


def _commit(facts: Facts, commit: str) -> str:
    shown = code(commit[:12])
    return f"[{shown}]({facts.commits}{commit})" if facts.commits else shown


def _what_went_wrong(facts: Facts) -> Iterator[Block]:
    told = (ExitCode.PASS, ExitCode.FIRMWARE)  # by figures and faults, where there is a verdict
    unread = [leg for leg in facts.legs if leg.owner or (leg.exit_code not in told and not leg.is_open)]
    said = [*facts.findings, *(leg.sentence for leg in unread)]
    found = [fault for verdict in _verdicts(facts.legs) for fault in verdict.faults]
    sentences = [one for one in said if not any(fault.sentence.rstrip(".") in one for fault in found)]
    if found or sentences:
        yield tables.faults(found, sentences, rank=2)


def _remarks(legs: Sequence[LegFacts], items: Sequence[ComparedSeries | SeriesVerdict]) -> Iterator[Block]:
    """Yield what stands wherever figures do: that they are virtual, that noise is simulated."""
    said = list(dict.fromkeys(markdown(remark) for leg in legs for remark in leg.remarks))
    said += ["tail5 is the mean of the slowest 5 %."] * any("_tail5" in item.metric for item in items)
    if len(said) > _MOST_REMARKS:
        said[_MOST_REMARKS:] = [f"… and {len(said) - _MOST_REMARKS} more remarks."]
    if said:
        yield Block(f"<sub>{' '.join(said)}</sub>")


def _folded(facts: Facts, rest: Sequence[ComparedSeries]) -> Iterator[Block]:
    within = [item for item in rest if item.outcome == "pass"]
    others = [item for item in rest if item.outcome != "pass"]
    if within:
        title = f"{_count(len(within), 'comparison')} within the tolerance"
        yield tables.comparisons("", within, rank=6, title=title)
    if others:
        title = f"{_count(len(others), 'comparison')} without a decision, as advice or for want of a baseline"
        yield tables.comparisons("", others, rank=7, title=title)
    warnings = [warning for verdict in _verdicts(facts.legs) for warning in verdict.warnings]
    block = tables.notes("Worth knowing", warnings, rank=5)
    if block:
        yield block
    if facts.legs:
        yield tables.legs_table(facts.legs, facts.said, rank=4, title="The legs of this run")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _foot(facts: Facts) -> Block:
    links = [f"[{text}]({address})" for text, address in facts.links.items()]
    changes = f"changes: {markdown(', '.join(facts.changes), 100)}" if facts.changes else ""
    ruler = f"not compared: {RULER_ON_BOTH_SIDES}" if "ruler" in facts.changes else ""
    parts = list(filter(None, [*links, changes, ruler]))
    return Block(f"<sub>{' · '.join(parts)}</sub>" if parts else "")
