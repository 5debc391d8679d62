# SPDX-License-Identifier: Apache-2.0
"""Which cases a comparison is about, and which records of the journal are its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.base.errors import ConfigError
from hil.model import Case, Comparison, Entry, NotRun, RunRecord, bench_of, format_case_id, parameters_in
from hil.thresholds.types import Thresholds


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
