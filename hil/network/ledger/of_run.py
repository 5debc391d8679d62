# SPDX-License-Identifier: Apache-2.0
"""The ledgers of a stored run, from its records: for a reader, and as JSON."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.model import RunRecord, short_case
from hil.network.ledger.files import LEDGER_FILE, LedgerCounts, counts_of, lines_of, sentence_of, table_of
from hil.network.ledger.points import Owner
from hil.store import RunDirectory
from hil.thresholds import load
from hil.thresholds.loader import FOLDER
from hil.thresholds.types import Thresholds

_NO_FILE = "none: the run's peer folder has no ledger.csv (any more)"


@dataclass(frozen=True)
class CaseLedger:
    """The ledger of one record; ``file`` is where each message's line is, "" where that is gone. ``name`` is
    the bench with the parameters that differ from their defaults."""

    record: RunRecord
    name: str
    counts: LedgerCounts
    file: str


def chosen(
    directory: RunDirectory, records: Sequence[RunRecord], boards: Sequence[str], text: str
) -> list[CaseLedger]:
    """Return the wanted ledgers, in the journal's order. Raises ConfigError where there is none."""
    cases = [case for record in records if (case := _case(directory, record))]
    if not cases:
        raise ConfigError(
            f"{directory.path}: no case of this run has a loss ledger; {_benches(records)}.",
            next_step="measure the bench 'delivery': hil run --suite 'delivery'.",
        )
    wanted = [
        case
        for case in cases
        if (not boards or case.record.board in boards) and (text in case.record.case_id or text in case.name)
    ]
    if not wanted:
        there = "\n  ".join(dict.fromkeys(f"{case.record.board} {case.name}" for case in cases))
        asked = " ".join([*(f"--board {board}" for board in boards), *([f"--case {text}"] if text else [])])
        raise ConfigError(f"{directory.path}: no ledger matches {asked}. Ledgers:\n  {there}")
    return wanted


def _case(directory: RunDirectory, record: RunRecord) -> CaseLedger | None:
    facts = record.environment.get("peer", {})
    try:
        counts = counts_of(facts)
    except ConfigError as error:
        where = f"{directory.journal_path}: {record.case_id} on board {record.board}"
        raise ConfigError(
            f"{where}, boot {record.boot_index}: {error.sentence}", next_step=error.next_step
        ) from error
    if counts is None:
        return None
    path = directory.path / str(facts.get("folder")) / LEDGER_FILE
    return CaseLedger(record, _name(directory, record), counts, str(path) if path.is_file() else "")


def _name(directory: RunDirectory, record: RunRecord) -> str:
    """Return the case's short name; the whole one where the run's own thresholds file is gone."""
    thresholds = _thresholds(directory.path / FOLDER, record.bench)
    label = thresholds.case_label(record.parameters) if thresholds else ""
    return short_case(record.bench, label) if label else record.case_id


@functools.cache
def _thresholds(folder: Path, bench: str) -> Thresholds | None:
    try:
        return load(bench, folder)
    except ConfigError:
        return None


def _benches(records: Sequence[RunRecord]) -> str:
    benches = sorted({record.bench for record in records})
    return f"it measured {', '.join(benches)}" if benches else "it has no record at all"


def text_of(case: CaseLedger) -> list[str]:
    """Return the ledger of a case for a reader."""
    record, counts = case.record, case.counts
    order = f"{counts.duplicates} further copies, {counts.out_of_order} out of order"
    return [
        f"{record.board} ({record.kind}), boot {record.boot_index}{_role(record)}: {case.name}",
        *(f"  {line}" for line in lines_of(table_of(counts))),
        f"  {sentence_of(counts)}; {order}",
        f"  each message: {case.file or _NO_FILE}",
    ]


def _role(record: RunRecord) -> str:
    return "" if record.role == "candidate" else f", {record.role}"


def sum_of(cases: Sequence[CaseLedger]) -> str:
    """Return the sum over all cases, by owner, with the kinds of boards it was measured on."""
    kinds = ", ".join(sorted({case.record.kind for case in cases}))
    sent = sum(case.counts.sent for case in cases)
    lost = {owner: sum(case.counts.lost[owner] for case in cases) for owner in Owner if owner}
    parts = ", ".join(f"{owner.word} {count}" for owner, count in lost.items() if count)
    ledgers = f"{len(cases)} ledger{'' if len(cases) == 1 else 's'} ({kinds})"
    return f"{ledgers}: {sent} sent, {sum(lost.values())} lost{f': {parts}' if parts else ''}"


def json_of(case: CaseLedger) -> Mapping[str, object]:
    """Return the ledger of a case as `hil ledger --json` prints it."""
    record, counts = case.record, case.counts
    return {
        "run_id": record.run_id,
        "board": record.board,
        "kind": record.kind,
        "role": record.role,
        "boot_index": record.boot_index,
        "case_id": record.case_id,
        **{name: value for name, value in asdict(counts).items() if name not in ("lost", "passed")},
        "passed": {point.word: count for point, count in counts.passed.items()},
        "lost": {owner.word: count for owner, count in counts.lost.items()},
        "file": case.file,
    }
