# SPDX-License-Identifier: Apache-2.0
"""What becomes of a study's claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hil.reports.studies.declaration import Claim
from hil.reports.studies.declaration.types import NOT_MEASURABLE, UNMEASURED
from hil.reports.studies.document import Table
from hil.reports.studies.records import BoardRun, boots

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
BY_FACT = "known without measuring"


@dataclass(frozen=True)
class Finding:
    """``verdict`` is one of the words above; ``reason`` has the figures."""

    verdict: str
    reason: str


def from_test(supports: bool | None, reason: str) -> Finding:
    """Return the finding of a comparison; None where the intervals overlap."""
    return Finding(UNDECIDED if supports is None else SUPPORTED if supports else CONTRADICTED, reason)


def _unmeasured(claim: Claim) -> Finding | None:
    """Return the finding of a claim that no record decides, None of any other."""
    if claim.check not in UNMEASURED:
        return None
    return Finding(UNDECIDED if claim.check == NOT_MEASURABLE else BY_FACT, claim.remark)


def claim_table(
    claims: Sequence[Claim],
    run: BoardRun,
    check: Callable[[Claim, BoardRun], Finding],
    *,
    where: str = "on our link",
    name: str = "claims",
) -> Table:
    """Return the table ``name``: each claim with what our records say of it; ``where`` heads the verdicts."""
    rows, data, notes = [], [], []
    for claim in claims:
        finding = _unmeasured(claim) or check(claim, run)
        rows.append((claim.says, finding.verdict, finding.reason))
        data.append(
            {"claim": claim.id, "says": claim.says, "verdict": finding.verdict, "reason": finding.reason}
        )
        if claim.remark and claim.check not in UNMEASURED:
            notes.append(f"“{claim.says}” {claim.remark}")
    if boots(run.records) < 2:
        notes.append(
            "Measured in one boot: a claim is supported or contradicted by this boot; another may differ."
        )
    columns = ("the study says", where, "because")
    return Table(name, name.capitalize(), columns, tuple(rows), tuple(notes), tuple(data))
