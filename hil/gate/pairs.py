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
from hil.gate.surroundings import Check, check_board, take_back
from hil.metrics.boot_value import BootValue
from hil.metrics.metric import Metric
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
from hil.thresholds.limits import CompareRule, Where, most_specific, series_facts
from hil.thresholds.types import Thresholds

Records = Mapping[str, tuple[RunRecord, ...]]


@dataclass(frozen=True)
class CaseBoots:
    """The boots of one case, candidate against other, by board and in their order: of all its metrics.

    What is found out of them (their surroundings, the value of a metric) is kept, and so is what was there at
    a look.
    """

    comparison: Comparison
    case: Case
    candidate: Records
    other: Records
    values: dict[tuple[str, str, int], BootValue | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    _looks: dict[tuple[int, int], CaseBoots] = field(default_factory=dict, compare=False, repr=False)

    @property
    def sides(self) -> tuple[Records, Records]:
        return self.candidate, self.other

    @functools.cached_property
    def records(self) -> tuple[RunRecord, ...]:
        return tuple(record for records in self.by_board.values() for record in records)

    @functools.cached_property
    def by_board(self) -> Records:
        return {
            board: self.candidate.get(board, ()) + self.other.get(board, ())
            for board in self.comparison.boards
        }

    @functools.cached_property
    def checks(self) -> Mapping[str, Check]:
        """What came of the checks of each board that has boots of both."""
        boards = [board for board in self.comparison.boards if all(side.get(board) for side in self.sides)]
        checks = {board: check_board(self.candidate[board], self.other[board]) for board in boards}
        return take_back(checks, {board: [r.boot_index for r in self.candidate[board]] for board in boards})

    def as_of(self, look: tuple[int, int]) -> CaseBoots:
        """Return what there was when each board had so many boots, (candidate, other)."""
        if look not in self._looks:
            candidate, other = (
                {board: records[:boots] for board, records in side.items()}
                for side, boots in zip(self.sides, look, strict=True)
            )
            self._looks[look] = CaseBoots(self.comparison, self.case, candidate, other, self.values)
        return self._looks[look]


@dataclass(frozen=True)
class ComparedPair:
    """One metric of one case, candidate against other: what one decision is about.

    ``rule`` is the one it may block by, None where it is advice; ``muted`` says by board why what it finds
    does not block.
    """

    boots: CaseBoots
    metric: Metric
    thresholds: Thresholds
    rule: CompareRule | None = None
    muted: Mapping[str, str] = field(default_factory=dict)

    @property
    def comparison(self) -> Comparison:
        return self.boots.comparison

    @property
    def case(self) -> Case:
        return self.boots.case

    @property
    def series_id(self) -> str:
        own = self.comparison
        return format_series_id(own.rack, own.target, self.case.case_id, self.metric.name, own.product)

    def as_of(self, look: tuple[int, int]) -> ComparedPair:
        """Return the pair as it was at a look; whether it blocks is asked anew."""
        return _with_rule(ComparedPair(self.boots.as_of(look), self.metric, self.thresholds))

    @property
    def kind(self) -> Kind:
        records = self.boots.records
        return records[0].kind if records else kind_of(self.comparison.target)

    @property
    def clock(self) -> str:
        """By what its times were taken; "" where it is no time."""
        records = self.boots.records
        own = records[0].clock if records and self.metric.unit.dimension == "time" else ""
        return self.metric.clock or own

    @property
    def why_advice(self) -> str:
        """Explain why the pair does not block; "" if it does. Boards muted by themselves do not count."""
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
) -> list[ComparedPair]:
    """Return the pairs of one comparison, in an order that does not depend on the journal's.

    Raises ConfigError: a bench without thresholds, a case id that its parameters do not allow, two rules that
    match and neither is more specific.
    """
    cases = cases_of(comparison, entries, thresholds)
    measured: dict[str, list[RunRecord]] = {}
    for record in records_of(comparison, entries):
        measured.setdefault(record.case_id, []).append(record)
    pairs = []
    for case_id in sorted(cases):
        case, own = cases[case_id], thresholds_of(cases[case_id].bench, thresholds)
        mine = measured.get(case_id, [])
        boots = CaseBoots(comparison, case, _by_board(mine, "candidate"), _by_board(mine, comparison.role))
        pairs += [
            _with_rule(ComparedPair(boots, metric, own)) for metric in own.metrics_of(case.parameters, mine)
        ]
    return pairs


def may_block(comparison: Comparison, case: Case, metric: Metric, thresholds: Thresholds) -> bool:
    """Return whether a rule may make the pair blocking, by what is known before anything is measured.

    The air is not, so a rule for a certain air counts: what alpha is shared out among must not change.
    """
    # main may well have left the reference behind
    rules = thresholds.compare if comparison.role == "base" else ()
    return any(_is_possible(rule.where, comparison, case, metric) for rule in rules)


def may_be_limited(comparison: Comparison, case: Case, metric: Metric, thresholds: Thresholds) -> bool:
    """Return whether an absolute limit may block a series of these boards, known as in may_block()."""
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


def _with_rule(pair: ComparedPair) -> ComparedPair:
    """Look up by which rule the pair blocks, and which of its boards do not.

    Of boards with different rules the strictest holds; those without one are left out.
    """
    facts = {board: _facts(pair, board) for board in pair.comparison.boards}
    rules = {board: most_specific(pair.thresholds.compare, facts[board]) for board in facts}
    found = [rule for rule in rules.values() if rule is not None]
    if not found:
        return pair
    rule = min(found, key=lambda one: (one.tolerance, one.min_effect, one.source))
    muted = {board: _why_muted(pair, board, facts[board], rules[board]) for board in facts}
    return replace(pair, rule=rule, muted={board: why for board, why in muted.items() if why})


def _facts(pair: ComparedPair, board: str) -> dict[str, Scalar]:
    records = pair.boots.by_board[board]
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


def _why_muted(pair: ComparedPair, board: str, facts: Mapping[str, Scalar], rule: CompareRule | None) -> str:
    if rule is None:
        return f"no rule under 'compare:' is for board {board}"
    return limits.why_muted(pair.metric, pair.boots.by_board[board], pair.thresholds, facts)


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
            next_step="judge the run by the thresholds in its own folder.",
        )
    return case


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def thresholds_of(bench: str, thresholds: Mapping[str, Thresholds]) -> Thresholds:
    """Return the thresholds of a bench. Raises ConfigError where it has none."""
    if bench not in thresholds:
        raise ConfigError(f"bench {bench!r} has no thresholds.", next_step=f"write thresholds/{bench}.yaml.")
    return thresholds[bench]
