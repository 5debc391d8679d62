# SPDX-License-Identifier: Apache-2.0
"""The page: the verdict in one line, then what a person asks next, and folded what only some ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hil.base.errors import ExitCode
from hil.base.untrusted import code, markdown
from hil.ci.plan import RULER_ON_BOTH_SIDES
from hil.gate.words.comparisons import exactly
from hil.model import ComparedSeries, SeriesVerdict, Verdict
from hil.reports import compared, rows
from hil.reports.comment import tables
from hil.reports.comment.facts import Facts, LegFacts
from hil.reports.comment.tables import Block, fit
from hil.reports.names import case_name, short_metric

# by layout: GitHub takes 65,536 characters of a comment, to which a marker is added, and 1 MiB of a summary,
# whose characters have up to 4 bytes
CHARACTERS = {"comment": 60_000, "summary": 250_000}
_MOST_REMARKS = 8  # runs of ours come to three; nothing else cuts them
_OPEN = {
    "undecided": "? Undecided",
    "no-baseline": "? Limits only, nothing to compare with",
}  # the worse first
_WORDS = {
    ExitCode.FIRMWARE: "✗ Regressed",
    ExitCode.CONFIG: "✗ Not measured, the configuration is wrong",
    ExitCode.RIG: "? No verdict",
    ExitCode.UNDECIDED: "? Incomplete, not all was measured",
    ExitCode.INTERRUPTED: "? Interrupted",
    ExitCode.TERMINATED: "? Terminated",
}


def render(facts: Facts, most: int = CHARACTERS["comment"]) -> str:
    """Return the page in at most ``most`` characters."""
    if facts.problem:
        return fit([*_no_verdict(facts), _foot(facts)], most)
    legs = facts.legs
    told = [item for verdict in _verdicts(legs) for item in compared.ranked(verdict)]
    broken = rows.by_severity(item for verdict in _verdicts(legs) for item in verdict.series)
    changed = _in_order([item for item in told if item.outcome == "regressed" or tables.is_better(item)])
    open_ = [item for item in told if item.outcome == "undecided" and item.blocking]
    waiting = [leg for leg in legs if leg.is_open]
    quiet = facts.exit_code == ExitCode.PASS and not (changed or open_ or waiting or facts.loosened)
    blocks = [*_head(facts, changed, broken, told, quiet=quiet)]
    if undecided := [leg for leg in waiting if leg.exit_code != ExitCode.FIRMWARE]:
        blocks.append(tables.open_legs(undecided, rank=1))
    if changed or open_:
        blocks.append(tables.comparisons("What changed", [*changed, *open_], rank=1))
    if broken:
        blocks.append(tables.broken_limits(broken, rank=0))
    if facts.loosened:
        blocks.append(tables.loosened(facts.loosened, rank=1))
    blocks += _what_went_wrong(facts)
    blocks += filter(None, [tables.not_run(legs, rank=3, folded=quiet)])
    blocks += _remarks(legs)
    blocks += _folded(facts, [item for item in told if item not in changed and item not in open_])
    return fit([*blocks, _foot(facts)], most)


def _verdicts(legs: Sequence[LegFacts]) -> list[Verdict]:
    return [leg.verdict for leg in legs if leg.verdict]


def _in_order(items: Sequence[ComparedSeries]) -> list[ComparedSeries]:
    """Return what fails the run first, then what else grew worse, then what improved; the largest first."""
    return sorted(
        items,
        key=lambda item: (
            not compared.is_blocked(item),
            tables.is_better(item),
            -abs(item.change or 0.0),
        ),
    )


def _no_verdict(facts: Facts) -> Iterator[Block]:
    yield Block("### ? No verdict could be read")
    yield Block(f"{_commits(facts)}. Why: {markdown(facts.problem)}")
    yield Block(
        "This is no pass. What may be merged the check `hil-verdict` decides, "
        "which runs the pull request's own code."
    )


def _head(
    facts: Facts,
    changed: Sequence[ComparedSeries],
    broken: Sequence[SeriesVerdict],
    told: Sequence[ComparedSeries],
    *,
    quiet: bool,
) -> Iterator[Block]:
    if quiet:
        yield Block(f"{_quiet_words(facts, told)} {_commits(facts)}.")
        return
    yield Block(f"### {_verdict_words(facts, changed, broken)}")
    legs = " · ".join(f"{code(leg.name)} {tables.mark(leg)}" for leg in facts.legs if not leg.reason)
    yield Block(f"{_commits(facts)}{f' · {legs}' if legs else ''}")


def _quiet_words(facts: Facts, told: Sequence[ComparedSeries]) -> str:
    """Return one line for a pass in which nothing changed, or for which nothing was measured."""
    verdicts = _verdicts(facts.legs)
    if not verdicts:
        reason = next((leg.reason for leg in facts.legs if leg.reason), "")
        return (
            f"– **Nothing had to be measured:** {markdown(reason)}."
            if reason
            else "– **Nothing was planned.**"
        )
    within = sum(item.outcome == "pass" for item in told)
    kept = sum(item.limit is not None for verdict in verdicts for item in verdict.series)
    figures: list[SeriesVerdict | ComparedSeries] = []
    for verdict in verdicts:
        figures += [*verdict.series, *verdict.compared]
    kinds = sorted({item.kind for item in figures})
    said = [f"{within:,} comparisons within their tolerance"] if within else []
    said += [f"{kept:,} figures within their limits"] if kept else []
    return f"✓ **No figure changed:** {', '.join(said) or 'nothing to set it beside'} ({', '.join(kinds)})."


def _verdict_words(facts: Facts, changed: Sequence[ComparedSeries], broken: Sequence[SeriesVerdict]) -> str:
    """Return the verdict and what tells most: "✗ Regressed: publish_latency_p50 +20.1 % in …, and 3 more"."""
    if facts.accepted:
        who, why = code(facts.accepted["login"], 40), markdown(facts.accepted["reason"], 250)
        return f"✗ Regressed, accepted by {who}: {why}"
    if facts.exit_code in (ExitCode.PASS, ExitCode.UNDECIDED) and (words := _open_words(facts)):
        return words
    if facts.exit_code == ExitCode.PASS:
        better = [item for item in changed if tables.is_better(item)]
        worse = [item for item in changed if not tables.is_better(item)]
        first = (worse or better)[:1]
        word = "✓ Passed" + (", improved" if better and not worse else "")
        return f"{word}: {_change_words(first[0])}{_more(len(changed))}" if first else word
    word = _word(facts)
    blocked = [item for item in changed if compared.is_blocked(item)]
    if facts.exit_code == ExitCode.FIRMWARE and (blocked or broken):
        told = _change_words(blocked[0]) if blocked else _limit_words(broken[0])
        return f"{word}: {told}{_more(len(blocked) + len(broken))}"
    names = [code(leg.name) for leg in facts.legs if leg.exit_code == facts.exit_code]
    return f"{word}: {', '.join(names)}" if names else word


def _word(facts: Facts) -> str:
    """Return what the exit code is called: the rig's fault is only what somebody says is."""
    owners = {leg.owner for leg in facts.legs if leg.exit_code == facts.exit_code}
    if facts.exit_code == ExitCode.RIG and "rig" in owners:
        return "? No verdict, the rig failed"
    return "✗ Not measured, the firmware failed" if owners == {"firmware"} else _WORDS[facts.exit_code]


def _open_words(facts: Facts) -> str:
    """Return "? Undecided: `compare`" where nothing is worse than that, else ""."""
    if any(leg.status != ExitCode.PASS and not leg.is_open for leg in facts.legs):
        return ""
    by_policy = ", which its policy fails" if facts.exit_code != ExitCode.PASS else ""
    for outcome, word in _OPEN.items():
        if found := [code(leg.name) for leg in facts.legs if leg.is_open and leg.outcome == outcome]:
            return f"{word}{by_policy}: {', '.join(found)}"
    return ""


def _change_words(item: ComparedSeries) -> str:
    case, target = markdown(case_name(item), 60), f"{markdown(item.target, 40)} ({item.kind})"
    if exact := exactly(item):
        return f"{code(short_metric(item), 60)} of {case} {markdown(exact, 80)} on {target}"
    change = compared.change(item, item.unit, relative=item.relative)
    return f"{code(short_metric(item), 60)} {markdown(change, 40)} in {case} on {target}"


def _limit_words(item: SeriesVerdict) -> str:
    value, limit = rows.quantity(item, item.value), rows.quantity(item, item.limit)
    what = f"{code(short_metric(item), 60)} {markdown(value, 40)}, limit {markdown(limit, 40)}"
    return f"{what}, in {markdown(case_name(item), 60)} on {code(item.board, 40)} ({item.kind})"


def _more(count: int) -> str:
    return f", and {count - 1} more" if count > 1 else ""


def _commits(facts: Facts) -> str:
    head = _commit(facts, facts.head)
    return f"{head} against its merge base {_commit(facts, facts.base)}" if facts.base else head


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


def _remarks(legs: Sequence[LegFacts]) -> Iterator[Block]:
    """Yield what stands wherever figures do: that they are virtual, that noise is simulated."""
    said = list(dict.fromkeys(markdown(remark) for leg in legs for remark in leg.remarks))
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
        yield tables.legs_table(facts.legs, rank=4, title="The legs of this run")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _foot(facts: Facts) -> Block:
    links = [f"[{text}]({address})" for text, address in facts.links.items()]
    changes = f"changes: {markdown(', '.join(facts.changes), 100)}" if facts.changes else ""
    ruler = f"not compared: {RULER_ON_BOTH_SIDES}" if "ruler" in facts.changes else ""
    parts = list(filter(None, [*links, changes, ruler]))
    return Block(f"<sub>{' · '.join(parts)}</sub>" if parts else "")
