# SPDX-License-Identifier: Apache-2.0
"""Why a board's current is not among the figures, though the rack file names a meter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hil.metrics.metric import CURRENT
from hil.model import RunRecord

_SENTENCES = {
    "error": "The current of {board} was not measured in {cases}, which is the rig's fault: {why}",
    "sleep_error": "The current of {board} asleep cannot be told in {cases}: {why}",
}


def current_notes(records: Iterable[RunRecord]) -> list[str]:
    """Return a sentence for each board and reason, with how many cases lack the figures by it."""
    found = Counter(
        (key, record.board, str(why))
        for record in records
        for key in _SENTENCES
        if (why := record.environment.get(CURRENT, {}).get(key))
    )
    return [
        _SENTENCES[key].format(board=board, cases=f"{times} case{'' if times == 1 else 's'}", why=why)
        for (key, board, why), times in found.items()
    ]
