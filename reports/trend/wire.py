"""What was seen on the wire of a case: Wireshark's symptoms, each with the filter that counts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hil.model import RunRecord
from hil.network.dissect.symptoms import SYMPTOMS
from hil.reports.ledger import GROUP

_POINTS = (("ap_", "on the access point's side of the air"), ("broker_", "at the broker"))
NOTHING = "Nothing was captured: only cases with a broker of their own (delivery, echo) record their packets."


def wire_of(records: Sequence[RunRecord]) -> tuple[list[dict[str, Any]], str]:
    """Return the symptoms of a case over its boots, and a note: where they were seen, or why there are none.

    The access point's capture comes before the broker's, which did not see what the air lost.
    """
    for prefix, where in _POINTS:
        counts = {symptom.name: _count(records, f"{prefix}{symptom.name}") for symptom in SYMPTOMS}
        seen = {name: count for name, count in counts.items() if count is not None}
        if seen:
            return [
                {"symptom": symptom.label, "count": seen[symptom.name], "filter": symptom.display_filter}
                for symptom in SYMPTOMS
                if symptom.name in seen
            ], _note(records, where)
    return [], NOTHING


def _count(records: Sequence[RunRecord], name: str) -> int | None:
    counts = [record.environment.get(GROUP, {}).get(name) for record in records]
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    return sum(known) if known else None


def _note(records: Sequence[RunRecord], where: str) -> str:
    virtual = " (virtual)" if any(record.kind == "virtual" for record in records) else ""
    boots = f"{len(records)} boots together" if len(records) > 1 else "one boot"
    return f"Captured {where}{virtual}, {boots}."
