# SPDX-License-Identifier: Apache-2.0
"""What loss ledgers say: a sentence a case, a line a case that lost messages, and where the files lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hil.model import RunRecord, Verdict
from hil.network.ledger.files import LEDGER_FILE, LedgerCounts, counts_of, sentence_of, total_of
from hil.reports.names import place

GROUP = "peer"
PEER_FOLDER = "peer"


@dataclass(frozen=True)
class LossNote:
    """One candidate's case that lost messages, on purpose where it is ``planted``.

    ``text`` says where it ran and who owns the losses.
    """

    board: str
    case_id: str
    text: str
    files: str
    planted: bool


def ledger_sentence(records: Iterable[RunRecord]) -> str:
    """Return what became of the messages of one case, over its boots; "" where no ledger was kept.

    Raises ConfigError: a ledger's sums do not agree.
    """
    records = list(records)
    counts = _total(records)
    return sentence_of(counts, boots=len(_ledgers(records))) if counts else ""


def loss_notes(records: Iterable[RunRecord], verdict: Verdict) -> list[LossNote]:
    """Return a note for each candidate's case that lost messages."""
    return [
        LossNote(
            own[0].board,
            own[0].case_id,
            f"{place(own[0], verdict)}: {ledger_sentence(own)}{'; the case plants a fault' * _plants(own)}",
            _files(own),
            _plants(own),
        )
        for own in _losing(records)
    ]


def ledger_file(run_path: Path, record: RunRecord) -> Path | None:
    """Return the file with a line a message, None where there is none (any more)."""
    folder = record.environment.get(GROUP, {}).get("folder")
    path = run_path / str(folder) / LEDGER_FILE
    inside = isinstance(folder, str) and path.resolve().is_relative_to((run_path / PEER_FOLDER).resolve())
    return path if inside and path.is_file() else None


def _losing(records: Iterable[RunRecord]) -> list[list[RunRecord]]:
    """Return the candidate's records with a ledger, by case and board, where any boot lost something."""
    cases: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        if record.role == "candidate" and _ledgers([record]):
            cases.setdefault((record.board, record.case_id), []).append(record)
    return [own for own in cases.values() if any(counts.lost_count for counts in _ledgers(own))]


def _plants(records: list[RunRecord]) -> bool:
    """Whether the case makes messages get lost, as its parameter ``fault`` says."""
    return records[0].parameters.get("fault", "none") != "none"


def _ledgers(records: Iterable[RunRecord]) -> list[LedgerCounts]:
    found = (counts_of(record.environment.get(GROUP, {})) for record in records)
    return [counts for counts in found if counts]


def _total(records: Iterable[RunRecord]) -> LedgerCounts | None:
    found = _ledgers(records)
    return total_of(found) if found else None


def _files(records: Iterable[RunRecord]) -> str:
    folders = (record.environment[GROUP].get("folder") for record in records)
    return ", ".join(f"{folder}/{LEDGER_FILE}" for folder in folders if folder) or f"no {LEDGER_FILE}"
