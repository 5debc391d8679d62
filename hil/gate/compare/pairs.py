# SPDX-License-Identifier: Apache-2.0
"""What is compared with what: a pair for each comparison, case and metric, with the records of its boards.

Who belongs to a comparison is said by its entry in the journal; whether it blocks, by the rules of
``compare:``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hil.base.errors import ConfigError
from hil.gate import limits
from hil.metrics.boot_value import BootValue
from hil.metrics.evaluation import Metric
from hil.model import (
    KINDS,
    Case,
    Comparison,
    Entry,
    Kind,
    NotRun,
    RunRecord,
    Scalar,
    bench_of,
    format_case_id,
    format_series_id,
    parameters_in,
)
from hil.thresholds.limits import CompareRule, Where, series_facts
from hil.thresholds.types import Thresholds

Records = Mapping[str, tuple[RunRecord, ...]]


@dataclass(frozen=True)
class Pair:
    """One metric of one case, candidate against other: what one decision is about.

    ``candidate`` and ``other`` hold the records by board, in the order of the boots. ``rule`` is the one it
    may block by, None where it is advice; ``muted`` says by board why what it finds does not block.
    ``memo`` keeps the values of boots, by board and boot index, from look to look.
    """

    comparison: Comparison
    case: Case
    metric: Metric
    thresholds: Thresholds
    candidate: Records
    other: Records
    rule: CompareRule | None = None
    muted: Mapping[str, str] = field(default_factory=dict)
    memo: dict[tuple[str, int], BootValue | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def series_id(self) -> str:
        own = self.comparison
        return format_series_id(own.rack, own.target, self.case.case_id, self.metric.name, own.product)

    @functools.cached_property
    def records(self) -> tuple[RunRecord, ...]:
        return tuple(
            record
            for side in (self.candidate, self.other)
            for board in self.comparison.boards
            for record in side.get(board, ())
        )

    @property
    def kind(self) -> Kind:
        return self.records[0].kind if self.records else kind_of(self.comparison.target)

    @property
    def case_label(self) -> str:
        return self.thresholds.case_label(self.case.parameters)

    @property
    def clock(self) -> str:
        """By what its times were taken; "" where it is no time."""
        own = self.records[0].clock if self.records and self.metric.unit.dimension == "time" else ""
        return self.metric.clock or own

    @property
    def why_advice(self) -> str:
        """Say why it does not block; "" where it does. Boards that are muted by themselves do not count."""
        if self.comparison.role == "reference":
            return "advice: a night beside the reference blocks nothing, hil changes tells of its steps"
        if self.rule is None:
            return "advice: no rule under 'compare:' names it"
        heard = [board for board in self.comparison.boards if board not in self.muted]
        return "" if heard else next(iter(self.muted.values()))

    @property
    def blocking(self) -> bool:
        return not self.why_advice


def kind_of(target: str) -> Kind:
    """Return the kind of a target's boards: what stands in front of the chip, physical where nothing does."""
    return next((kind for kind in KINDS if target.startswith(f"{kind}-")), "physical")


def pairs_of(
    comparison: Comparison, entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]
) -> list[Pair]:
    """Return the pairs of one comparison, in an order that does not depend on the journal's.

    Raises ConfigError: a bench without thresholds, a case id that its parameters do not allow, two rules that
    match and neither is more specific.
    """
    records = records_of(comparison, entries)
    cases = cases_of(comparison, entries, thresholds)
    pairs = []
    for case_id in sorted(cases):
        case, own = cases[case_id], thresholds_of(cases[case_id].bench, thresholds)
        mine = [record for record in records if record.case_id == case_id]
        candidate, other = (_by_board(mine, role) for role in ("candidate", comparison.role))
        for metric in own.metrics_of(case.parameters, mine):
            pairs.append(_with_rule(Pair(comparison, case, metric, own, candidate, other)))
    return pairs


def as_of(pair: Pair, look: tuple[int, int]) -> Pair:
    """Return the pair as it was when each board had so many boots, (candidate, other)."""
    candidate, other = (
        {board: records[:boots] for board, records in side.items()}
        for side, boots in zip((pair.candidate, pair.other), look, strict=True)
    )
    bare = Pair(pair.comparison, pair.case, pair.metric, pair.thresholds, candidate, other, memo=pair.memo)
    return _with_rule(bare)


def may_block(comparison: Comparison, case: Case, metric: Metric, thresholds: Thresholds) -> bool:
    """Say whether a rule may make the pair blocking, by what is known before anything is measured.

    The air is not, so a rule for a certain air counts: what alpha is shared out among must not change.
    """
    rules = (
        thresholds.compare if comparison.role == "base" else ()
    )  # main may well have left the reference behind
    return any(_is_possible(rule.where, comparison, case, metric) for rule in rules)


def may_be_limited(comparison: Comparison, case: Case, metric: Metric, thresholds: Thresholds) -> bool:
    """Say whether an absolute limit may block a series of these boards, known as in may_block()."""
    return metric.blocking and any(
        not limit.is_none and _is_possible(limit.where, comparison, case, metric)
        for limit in thresholds.limits
    )


def _is_possible(where: Where, comparison: Comparison, case: Case, metric: Metric) -> bool:
    facts = series_facts(
        metric.name, case.parameters, kind=kind_of(comparison.target),
        rack=comparison.rack, target=comparison.target, board="", air="", product=comparison.product,
    )  # fmt: skip
    boards = where.conditions.get("board")
    if boards is not None and boards not in comparison.boards:
        return False
    known = {key: value for key, value in facts.items() if key not in ("board", "air")}
    return not where.contradicts(known)


def _by_board(records: Iterable[RunRecord], role: str) -> Records:
    found: dict[str, tuple[RunRecord, ...]] = {}
    for record in records:
        if record.role == role:
            found[record.board] = (*found.get(record.board, ()), record)
    return found


def _with_rule(pair: Pair) -> Pair:
    """Look up by which rule the pair blocks, and which of its boards do not.

    Of boards with different rules the strictest holds; those without one are left out.
    """
    facts = {board: _facts(pair, board) for board in pair.comparison.boards}
    rules = {board: pair.thresholds.compare_rule(facts[board]) for board in facts}
    found = [rule for rule in rules.values() if rule is not None]
    if not found:
        return pair
    rule = min(found, key=lambda one: (one.tolerance, one.min_effect, one.source))
    muted = {board: _why_muted(pair, board, facts[board], rules[board]) for board in facts}
    return replace(pair, rule=rule, muted={board: why for board, why in muted.items() if why})


def _facts(pair: Pair, board: str) -> dict[str, Scalar]:
    records = [record for record in pair.records if record.board == board]
    return series_facts(
        pair.metric.name,
        pair.case.parameters,
        kind=pair.kind,
        rack=pair.comparison.rack,
        target=pair.comparison.target,
        board=board,
        air=limits.air_of(records[0]) if records else "",
        product=pair.comparison.product,
    )


def _why_muted(pair: Pair, board: str, facts: Mapping[str, Scalar], rule: CompareRule | None) -> str:
    if rule is None:
        return f"no rule under 'compare:' is for board {board}"
    records = [record for record in pair.records if record.board == board]
    return limits.why_muted(pair.metric, records, pair.thresholds, facts)


def records_of(comparison: Comparison, entries: Sequence[Entry]) -> list[RunRecord]:
    """Return the records on the comparison's boards, boots in their order.

    An entry that names no cases tells its records by their firmware.
    """
    cases = set(comparison.cases)
    digests = {comparison.candidate_sha256, comparison.other_sha256}
    found = [
        entry
        for entry in entries
        if isinstance(entry, RunRecord)
        and entry.rack == comparison.rack
        and entry.board in comparison.boards
        and (entry.case_id in cases if cases else entry.firmware_sha256 in digests)
    ]
    return sorted(found, key=lambda record: (record.board, record.boot_index, record.case_id))


def cases_of(
    comparison: Comparison, entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]
) -> dict[str, Case]:
    """Return every case that is compared by its id: the entry's, or those that were measured or left out.

    Raises ConfigError as parse_case_id() does.
    """
    if comparison.cases:
        return {case_id: parse_case_id(case_id, thresholds) for case_id in comparison.cases}
    records = records_of(comparison, entries)
    cases = {record.case_id: Case(record.bench, record.parameters) for record in records}
    left_out = {
        entry.case_id
        for entry in entries
        if isinstance(entry, NotRun) and entry.expected and entry.board in comparison.boards and cases
    }
    for case_id in sorted(left_out - set(cases)):
        if bench_of(case_id) in thresholds:
            cases[case_id] = parse_case_id(case_id, thresholds)
    return cases


def parse_case_id(case_id: str, thresholds: Mapping[str, Thresholds]) -> Case:
    """Return the case that is called so: ``bench/key=value,…``.

    Raises ConfigError: a bench without thresholds, parameters that its thresholds do not allow.
    """
    bench = bench_of(case_id)
    own = thresholds_of(bench, thresholds)
    given = parameters_in(case_id)
    overrides = {name: int(value) if _is_integer(value) else value for name, value in given.items()}
    case = own.case(overrides)
    if format_case_id(bench, case.parameters) != case_id:
        raise ConfigError(
            f"the journal compares {case_id}, which {own.source} calls {case.case_id}.",
            next_step="judge the run by the thresholds of its day, which lie in its folder.",
        )
    return case


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def thresholds_of(bench: str, thresholds: Mapping[str, Thresholds]) -> Thresholds:
    """Return the thresholds of a bench. Raises ConfigError where it has none."""
    if bench not in thresholds:
        raise ConfigError(f"bench {bench!r} has no thresholds.", next_step=f"write thresholds/{bench}.yaml.")
    return thresholds[bench]
