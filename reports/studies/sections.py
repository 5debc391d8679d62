# SPDX-License-Identifier: Apache-2.0
"""A study's page: the sections that its file lists, with what the study's code computes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.reports.studies.claims import Check, Finding, Statistic, claim_table, findings_of
from hil.reports.studies.comparison import plain_table
from hil.reports.studies.declaration import CLAIM_KINDS, Shown, Study
from hil.reports.studies.document import Section, Table
from hil.reports.studies.records import BoardRun

Tables = Mapping[str, Callable[[Study, BoardRun], Table | None]]
Sentences = Mapping[str, Callable[[Study, BoardRun], Sequence[str]]]


@dataclass(frozen=True)
class Parts:
    """What a study's code computes: tables by their ids, what decides claims, and sentences and warnings.

    These are by a section's heading; a question's key is "question 1". ``words`` stand in the file's remarks.
    """

    tables: Tables
    checks: Mapping[str, Check] = field(default_factory=dict)
    statistics: Mapping[str, Statistic] = field(default_factory=dict)
    answers: Sentences = field(default_factory=dict)
    warnings: Sentences = field(default_factory=dict)
    words: Callable[[BoardRun], Mapping[str, str]] = lambda _run: {}


def sections_of(study: Study, run: BoardRun, parts: Parts) -> list[Section]:
    """Return the sections that have anything; a case that is missing leaves its row and says why."""
    findings = findings_of(study, run, parts.checks, parts.statistics)
    tables = {f"{kind}s": partial(claim_table, kind, findings) for kind in CLAIM_KINDS}
    parts = replace(parts, tables={**parts.tables, **tables})
    found = [_section(study, run, parts, shown, findings) for shown in study.sections]
    return [section for section in found if section.tables or section.answers]


def _section(
    study: Study, run: BoardRun, parts: Parts, shown: Shown, findings: Mapping[str, Finding]
) -> Section:
    tables = [_table(study, run, parts, name) for name in shown.tables]
    remarks = (*shown.remarks, *(shown.virtual if run.kind == "virtual" else ()))
    words = parts.words(run)
    answers, warnings = (
        tuple(found[shown.key](study, run)) if shown.key in found else ()
        for found in (parts.answers, parts.warnings)
    )
    return Section(
        shown.heading,
        tuple(remark.format(**words) for remark in remarks),
        tuple(table for table in tables if table),
        (*answers, *(f"{findings[claim.id].verdict.capitalize()}: {claim.says}" for claim in shown.claims)),
        warnings,
    )


def _table(study: Study, run: BoardRun, parts: Parts, name: str) -> Table | None:
    """Return a table of the study's code, or one of others. Raises ConfigError where there is neither."""
    others = {table.id: table for table in study.background}
    if name in parts.tables:
        return parts.tables[name](study, run)
    if name not in others:
        hint = did_you_mean(name, (*parts.tables, *others))
        raise ConfigError(f"a section of the study {study.id!r} has an unknown table {name!r}{hint}")
    return plain_table(others[name])
