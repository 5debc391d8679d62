"""What becomes of a study's claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hil.reference import Claim
from reports.reproduction.document import Table
from reports.reproduction.records import BoardRun, boots

HOLDS, FAILS, CANNOT = "holds", "does not hold", "cannot be told here"
BY_FACT = "known without measuring"


@dataclass(frozen=True)
class Finding:
    """``verdict`` is one of the words above; ``reason`` has the figures."""

    verdict: str
    reason: str


def from_test(holds: bool | None, reason: str) -> Finding:
    """Return the finding of a comparison; None where the intervals overlap."""
    return Finding(CANNOT if holds is None else HOLDS if holds else FAILS, reason)


def claim_table(
    claims: Sequence[Claim],
    run: BoardRun,
    check: Callable[[Claim, BoardRun], Finding],
    *,
    where: str = "on our link",
) -> Table:
    """Return each claim with what our records say of it; ``where`` heads the verdicts."""
    rows, data, notes = [], [], []
    for claim in claims:
        finding = Finding(BY_FACT, claim.remark) if claim.check == "by-fact" else check(claim, run)
        rows.append((claim.says, finding.verdict, finding.reason))
        data.append(
            {"claim": claim.id, "says": claim.says, "verdict": finding.verdict, "reason": finding.reason}
        )
        if claim.remark and claim.check != "by-fact":
            notes.append(f"“{claim.says}” {claim.remark}")
    if boots(run.records) < 2:
        notes.append("Measured in one boot: what holds or fails does so in this boot; another may differ.")
    columns = ("the study says", where, "because")
    return Table("claims", "Claims", columns, tuple(rows), tuple(notes), tuple(data))
