# SPDX-License-Identifier: Apache-2.0
"""The real gate, asked once for the same records: many tests read the same few runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from hil.gate import judge as _judge
from hil.model import Entry, Verdict
from hil.reports.view.marks import plain
from hil.reports.view.run import parts_of
from hil.reports.view.source import Source

_VERDICTS: dict[str, Verdict] = {}


def judge(entries: Iterable[Entry], *given: Any) -> Verdict:
    """Return the gate's verdict; the gate is pure, so equal records and limits have an equal verdict."""
    entries = list(entries)
    key = hashlib.sha256(repr((entries, given)).encode()).hexdigest()
    if key not in _VERDICTS:
        _VERDICTS[key] = _judge(entries, *given)
    return _VERDICTS[key]


def told(verdict: Verdict) -> set[str]:
    """Return the lines that a person reads of a verdict, wherever it is shown."""
    lines = (
        line for part in parts_of([Source(verdict)]) if isinstance(part.body, tuple) for line in part.body
    )
    return {plain(words) for line in lines for words in (line.words, *line.more)}
