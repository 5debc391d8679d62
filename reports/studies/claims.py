# SPDX-License-Identifier: Apache-2.0
"""What becomes of a study's claims: each is tested as its file says, or by a function of the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.model import RunRecord
from hil.reports.studies.declaration import NOT_MEASURABLE, UNMEASURED, Claim, ClaimTest, Study
from hil.reports.studies.document import Table
from hil.reports.studies.estimate import ALPHA, Estimate
from hil.reports.studies.records import BoardRun, boots, grouped, say

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
BY_FACT = "known without measuring"
NOT_OF_A_CHIP = "of this virtual rack, not to be carried over to an ESP32"
Records = Sequence[RunRecord]


@dataclass(frozen=True)
class Finding:
    """``verdict`` is one of the words above; ``reason`` has the figures."""

    verdict: str
    reason: str


@dataclass(frozen=True)
class Statistic:
    """A figure of records, with bounds that are each wrong with the given alpha at most.

    ``difference`` is how far the second records are above the first, boot by boot. Without it the bounds of
    the two figures are held against each other.
    """

    words: str
    estimate: Callable[[Records, float], Estimate]
    difference: Callable[[Records, Records, float], Estimate] | None = None
    text: Callable[[Estimate], str] = lambda found: found.text


Check = Callable[[BoardRun], Finding]
NOTHING = Finding(UNDECIDED, "nothing of it was measured")


def from_test(supports: bool | None, reason: str) -> Finding:
    """Return the finding of a comparison; None where the intervals overlap."""
    return Finding(UNDECIDED if supports is None else SUPPORTED if supports else CONTRADICTED, reason)


def beyond(found: Estimate, bound: float) -> bool | None:
    """Return whether a figure is above a bound, provably below, or None where that cannot be told."""
    return True if found.low > bound else False if found.high < bound else None


def all_of(tests: Sequence[bool | None]) -> bool | None:
    """Return True where each is shown, False where one is shown not to be, None where that cannot be told."""
    return False if False in tests else True if tests and all(tests) else None


def of_the_chip(finding: Finding, run: BoardRun) -> Finding:
    """Say of a verdict on the chip's work that a virtual rack has no chip."""
    return replace(finding, reason=f"{finding.reason}; {NOT_OF_A_CHIP}") if run.kind == "virtual" else finding


@dataclass(frozen=True)
class _Group:
    """The records that the test compares with one another, by the labels of its values."""

    label: str
    cells: Mapping[str, tuple[RunRecord, ...]]


def _groups(test: ClaimTest, run: BoardRun) -> Iterator[_Group]:
    """Return the groups that have all that is compared: two values at least, or one that is bounded alone."""
    records = run.select(replace(test.select, highest=""))
    ordered = sorted(records, key=lambda one: [_rank(one.parameters.get(name)) for name in test.each])
    words = grouped(ordered, lambda one: tuple(say(name, one.parameters.get(name)) for name in test.each))
    for key, own in words.items():
        cells = {label: cell for label, values in test.at.items() if (cell := _cell(test, own, values))}
        if not test.over:
            cells = {"": _highest(test, own)}
        if test.ends:
            cells = {label: cells[label] for label in dict.fromkeys((*list(cells)[:1], *list(cells)[-1:]))}
        if len(cells) >= test.fewest:
            yield _Group(", ".join(key), cells)


def _rank(value: object) -> tuple[bool, float, str]:
    is_number = isinstance(value, int | float)
    return not is_number, float(value) if isinstance(value, int | float) else 0.0, str(value)


def _cell(test: ClaimTest, records: Records, values: Sequence[object]) -> tuple[RunRecord, ...]:
    """Return the records of the last of ``values`` that was measured."""
    for value in reversed(values):
        found = [
            one for one in records if all(str(one.parameters.get(name)) == str(value) for name in test.over)
        ]
        if found:
            return _highest(test, found)
    return ()


def _highest(test: ClaimTest, records: Records) -> tuple[RunRecord, ...]:
    values = [_rank(record.parameters.get(test.select.highest)) for record in records]
    return tuple(one for one, value in zip(records, values, strict=True) if value == max(values))


def decide(test: ClaimTest, run: BoardRun, statistic: Statistic) -> Finding:
    """Return what the records say of a claim: each group has to support it, one contradicts it."""
    groups = list(_groups(test, run))
    if not groups:
        return NOTHING
    paired = statistic.difference is not None and test.relation in ("rises", "falls")
    tests, parts = (_by_boot if paired else _by_bounds)(test, groups, statistic)
    words = f"{statistic.words}, {' to '.join(test.at)}" if paired else statistic.words
    finding = from_test(all_of(tests), f"{words}: {'; '.join(parts)}")
    return of_the_chip(finding, run) if test.chip else finding


_Decided = tuple[list[bool | None], list[str]]


def _by_boot(test: ClaimTest, groups: Sequence[_Group], statistic: Statistic) -> _Decided:
    """Hold what each value adds to the one before it, in the same boots, against the bound."""
    assert statistic.difference is not None
    alpha = ALPHA / sum(len(group.cells) - 1 for group in groups)
    tests, parts = [], []
    for group in groups:
        found = [statistic.difference(*pair, alpha) for pair in pairwise(group.cells.values())]
        tests += [test.holds(one.low, one.high) for one in found]
        parts.append(" ".join(filter(None, (group.label, *(_say(one, statistic) for one in found)))))
    return tests, parts


def _by_bounds(test: ClaimTest, groups: Sequence[_Group], statistic: Statistic) -> _Decided:
    """Hold each figure, or how far two or all of a group may be apart by their bounds, against the bound."""
    cells = sum(len(group.cells) for group in groups)
    sharing = max(2, cells - len(groups)) if test.relation in ("rises", "falls") else cells
    tests, parts = [], []
    for group in groups:
        found = {label: statistic.estimate(own, ALPHA / sharing) for label, own in group.cells.items()}
        compared = _compared(test.relation, list(found.values()))
        tests += [test.holds(one.low, one.high) for one in compared]
        told = ", ".join(f"{_say(one, statistic)} at {at}".removesuffix(" at ") for at, one in found.items())
        parts.append(f"{group.label}: {told}".removeprefix(": "))
    return tests, parts


def _compared(relation: str, found: Sequence[Estimate]) -> Sequence[Estimate]:
    """Return what is held against the bound: each figure, each rise, or the spread in shares of the least."""
    if relation in ("rises", "falls"):
        return [_rise(*pair) for pair in pairwise(found)]
    if relation != "equal":
        return found
    values = [one.value for one in found if one.value is not None and math.isfinite(one.value)]
    if len(values) < len(found):
        return [Estimate(0, 1)]
    low = max(one.low for one in found) - min(one.high for one in found)
    high = max(one.high for one in found) - min(one.low for one in found)
    return [Estimate(1, 1, max(values) - min(values), low, high).scaled(1 / min(values))]


def _say(found: Estimate, statistic: Statistic) -> str:
    return found.text if found.value is None else statistic.text(found)


def _rise(one: Estimate, other: Estimate) -> Estimate:
    """Return how far ``other`` is above ``one``, as far as the bounds of the two allow."""
    if one.value is None or other.value is None:
        return Estimate(0, 1)
    return Estimate(1, 1, other.value - one.value, other.low - one.high, other.high - one.low)


def findings_of(
    study: Study, run: BoardRun, checks: Mapping[str, Check], statistics: Mapping[str, Statistic]
) -> dict[str, Finding]:
    """Return each claim's finding, by its id.

    Raises:
        ConfigError: the study has no such check or statistic.
    """
    return {claim.id: _find(claim, run, checks, statistics) for claim in study.claims}


def _find(
    claim: Claim, run: BoardRun, checks: Mapping[str, Check], statistics: Mapping[str, Statistic]
) -> Finding:
    if claim.check in UNMEASURED:
        return Finding(UNDECIDED if claim.check == NOT_MEASURABLE else BY_FACT, claim.remark)
    kind, name, known = (
        ("statistic", claim.test.statistic, list(statistics))
        if claim.test
        else ("check", claim.check, list(checks))
    )
    if name not in known:
        hint = f"{did_you_mean(name, known)} Known: {', '.join(known)}."
        raise ConfigError(f"{claim.where}: the study has no {kind} {name!r}{hint}")
    return decide(claim.test, run, statistics[name]) if claim.test else checks[name](run)


def claim_table(kind: str, findings: Mapping[str, Finding], study: Study, run: BoardRun) -> Table:
    """Return the table of the claims of a kind: each with what our records say of it."""
    claims = study.claims_of(kind)
    data = tuple({"claim": claim.id, "says": claim.says, **vars(findings[claim.id])} for claim in claims)
    rows = tuple((claim.says, findings[claim.id].verdict, findings[claim.id].reason) for claim in claims)
    notes = [
        f"“{claim.says}” {claim.remark}" for claim in claims if claim.remark and claim.check not in UNMEASURED
    ]
    if boots(run.records) < 2:
        notes.append(
            "Measured in one boot: a claim is supported or contradicted by this boot; another may differ."
        )
    name = f"{kind}s"
    columns = ("the study says", "this run says", "because")
    return Table(name, name.capitalize(), columns, rows, tuple(notes), data)
