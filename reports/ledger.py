# SPDX-License-Identifier: Apache-2.0
"""What loss ledgers say: a sentence a case, a line a case that lost messages, and where the files lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hil.model import RunRecord, Verdict
from hil.network.ledger.files import LEDGER_FILE, Counts, counts_of, sentence_of, total_of
from hil.network.ledger.points import OWNERS
from hil.reports.names import case_name

GROUP = "peer"
PEER_FOLDER = "peer"
_LOSSES = tuple(owner for owner in OWNERS if owner)


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
            f"{_place(own[0], verdict)}: {ledger_sentence(own)}{'; the case plants a fault' * _plants(own)}",
            _files(own),
            _plants(own),
        )
        for own in _losing(records)
    ]


def loss_lines(records: Iterable[RunRecord], verdict: Verdict) -> list[str]:
    """Return the same as lines, with the files."""
    return [f"{note.text} ({note.files})" for note in loss_notes(records, verdict)]


def loss_total(records: Iterable[RunRecord]) -> str:
    """Return one sentence on all cases that lost messages; "" where nothing was lost."""
    losing = _losing(records)
    counts = _total(record for own in losing for record in own)
    cases = {own[0].case_id: _plants(own) for own in losing}
    boards = len({own[0].board for own in losing})
    number = f"{len(cases)} case{'' if len(cases) == 1 else 's'}{f' on {boards} boards' * (boards > 1)}"
    planting = sum(cases.values())
    purpose = (
        " on purpose" if planting == len(cases) else f" ({planting} of them on purpose)" * bool(planting)
    )
    return f"{number} lost messages{purpose}: {sentence_of(counts)}" if counts else ""


def loss_table(records: Iterable[RunRecord], verdict: Verdict) -> list[list[str]]:
    """Return the same cases as a table: sent, lost by owner, arrived; [] where nothing was lost."""
    rows = []
    for own in _losing(records):
        counts = _total(own)
        assert counts
        lost = [str(counts.lost[owner]) for owner in _LOSSES]
        rows.append(
            [own[0].board, own[0].kind, _case(own[0], verdict), str(counts.sent), *lost, str(counts.arrived)]
        )
    head = ["board", "kind", "case", "sent", *(f"lost: {owner.word}" for owner in _LOSSES), "arrived"]
    return [head, *rows] if rows else []


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


def _ledgers(records: Iterable[RunRecord]) -> list[Counts]:
    found = (counts_of(record.environment.get(GROUP, {})) for record in records)
    return [counts for counts in found if counts]


def _total(records: Iterable[RunRecord]) -> Counts | None:
    found = _ledgers(records)
    return total_of(found) if found else None


def _place(record: RunRecord, verdict: Verdict) -> str:
    return f"{record.board} ({record.kind}) {_case(record, verdict)}"


def _case(record: RunRecord, verdict: Verdict) -> str:
    own = [item for item in verdict.series if (item.board, item.case_id) == (record.board, record.case_id)]
    return case_name(own[0]) if own else record.case_id


def _files(records: Iterable[RunRecord]) -> str:
    folders = (record.environment[GROUP].get("folder") for record in records)
    return ", ".join(f"{folder}/{LEDGER_FILE}" for folder in folders if folder) or f"no {LEDGER_FILE}"
