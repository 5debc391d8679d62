# SPDX-License-Identifier: Apache-2.0
"""The page: the verdict in one line, then what a person asks next, and folded what only some ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hil.base.errors import ExitCode
from hil.base.untrusted import code, markdown
from hil.ci.plan import RULER_ON_BOTH_SIDES
from hil.model import Verdict
from hil.reports.comment.facts import Facts, LegFacts
from hil.reports.view.markdown import Block, block_of, fit, written
from hil.reports.view.marks import Code, Line, Part, Table, Words, count, listed
from hil.reports.view.run import FIRST, parts_of
from hil.reports.view.source import Source

# by layout: GitHub takes 65,536 characters of a comment, to which a marker is added, and 1 MiB of a summary,
# whose characters have up to 4 bytes
CHARACTERS = {"comment": 60_000, "summary": 250_000}
_MOST_REMARKS = 8  # runs of ours come to three; nothing else cuts them
_MOST_TITLE = 72  # characters of a commit's title, and of its author
_MOST_AUTHOR = 40
_MOST_OF_A_SENTENCE = 2_000  # characters
_MOST_OF_A_HEADING = 120
_MOST_OF_A_MARK = 60
_MOST_BOARDS = 8
_LEFT_OUT = ("boards", "limits")  # parts that a reviewer has in the report


def render(facts: Facts, most: int = CHARACTERS["comment"]) -> str:
    """Return the page in at most ``most`` characters."""
    if facts.problem:
        return fit([*_no_verdict(facts), *_attempts(facts), _foot(facts)], most)
    legs = facts.legs
    sources = [Source(leg.verdict, place=("leg ", Code(leg.name))) for leg in legs if leg.verdict]
    parts = parts_of(sources, wrong=_what_went_wrong(facts), skipped=_skipped(legs))
    waiting = [leg for leg in legs if leg.is_open]
    noted = any(leg.sign != "✓" for leg in legs if not leg.reason)  # a pass beside what the nights left open
    changed = any(part.name == "changed" for part in parts)
    quiet = facts.exit_code == ExitCode.PASS and not (changed or waiting or noted or facts.loosened)
    undecided = [leg for leg in waiting if leg.exit_code != ExitCode.FIRMWARE]
    others = [leg for leg in undecided if leg.sentence not in facts.said and facts.said not in leg.sentence]
    ours = [
        _lines("Undecided", ((Code(leg.name), f": {leg.sentence}") for leg in others), "leg"),
        _lines("What this change loosens, for an owner to accept", facts.loosened, "limit"),
    ]
    blocks = [
        *_head(facts, quiet=quiet),
        *_attempts(facts),
        Block(
            "",
            tuple(dict.fromkeys(f"Next: {written(step)}" for leg in legs for step in leg.steps)),
            noun="step",
        ),
        *_blocks([*ours, *(part for part in parts if part.name in FIRST)]),
        *_remarks(legs),
        *_blocks([part for part in parts if part.name not in (*FIRST, *_LEFT_OUT)]),
        *_blocks(_legs(legs, facts.said)),
    ]
    return fit([*blocks, _foot(facts)], most)


def _blocks(parts: Iterable[Part]) -> list[Block]:
    return [block_of(part, "**{}**", _MOST_OF_A_HEADING) for part in parts if part.body]


def _lines(heading: str, lines: Iterable[Words], noun: str) -> Part:
    return Part("ours", heading, tuple(map(Line, lines)), 1, noun)


def _skipped(legs: Sequence[LegFacts]) -> list[Words]:
    return [("leg ", Code(leg.name), f": {leg.reason}") for leg in legs if leg.reason]


def _legs(legs: Sequence[LegFacts], said: str) -> Iterator[Part]:
    """Yield one line a leg; what the page has ``said`` already stands there and not here."""
    kinds = {board.rpartition(" (")[2] for leg in legs for board in leg.boards}
    rows = []
    for leg in legs:
        boards = [board.rpartition(" (")[0] if len(kinds) == 1 else board for board in leg.boards]
        sentence = "above" if said and said in leg.sentence else leg.sentence
        rows.append((Code(leg.name), leg.mark, listed(map(Code, boards[:_MOST_BOARDS])) or "–", sentence))
    if rows:
        table = Table(("leg", "verdict", "boards", ""), tuple(rows), left=4)
        yield Part("legs", "The legs of this run", table, 4, "leg", folded=True)


def _verdicts(legs: Sequence[LegFacts]) -> list[Verdict]:
    return [leg.verdict for leg in legs if leg.verdict]


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
    others = " · ".join(f"{code(leg.name)} {markdown(leg.mark, _MOST_OF_A_MARK)}" for leg in measured)
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
    after = f", {count(facts.count, 'commit')} after" if facts.count else " against"
    site, commit, _ = facts.commits.rpartition("commit/")
    diff = f" ([diff]({site}compare/{facts.base}...{facts.head}))" if commit else ""
    return f"{head}{after} its merge base {_commit(facts, facts.base)}{diff}"


def _commit(facts: Facts, commit: str) -> str:
    shown = code(commit[:12])
    return f"[{shown}]({facts.commits}{commit})" if facts.commits else shown


def _what_went_wrong(facts: Facts) -> list[Words]:
    """Return what went wrong besides the verdicts' own faults."""
    told = (ExitCode.PASS, ExitCode.FIRMWARE)  # by figures and faults, where there is a verdict
    unread = [leg for leg in facts.legs if leg.owner or (leg.exit_code not in told and not leg.is_open)]
    said = [*facts.findings, *(leg.sentence for leg in unread)]
    faults = [fault for verdict in _verdicts(facts.legs) for fault in verdict.faults]
    return [one for one in said if not any(fault.sentence.rstrip(".") in one for fault in faults)]


def _remarks(legs: Sequence[LegFacts]) -> Iterator[Block]:
    """Yield what stands wherever figures do: that they are virtual, that noise is simulated."""
    said = list(dict.fromkeys(markdown(remark) for leg in legs for remark in leg.remarks))
    told = [item.metric for one in _verdicts(legs) for item in one.series]
    told += [item.metric for one in _verdicts(legs) for item in one.compared]
    tail = any("_tail5" in metric for metric in told)
    said += ["tail5 is the mean of the slowest 5 %."] * tail
    if len(said) > _MOST_REMARKS:
        said[_MOST_REMARKS:] = [f"… and {len(said) - _MOST_REMARKS} more remarks."]
    if said:
        yield Block(f"<sub>{' '.join(said)}</sub>")


def _foot(facts: Facts) -> Block:
    links = [f"[{text}]({address})" for text, address in facts.links.items()]
    changes = f"changes: {markdown(', '.join(facts.changes), 100)}" if facts.changes else ""
    ruler = f"not compared: {RULER_ON_BOTH_SIDES}" if "ruler" in facts.changes else ""
    parts = list(filter(None, [*links, changes, ruler]))
    return Block(f"<sub>{' · '.join(parts)}</sub>" if parts else "")
