# SPDX-License-Identifier: Apache-2.0
"""A judged run, as a view is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hil.model import RunRecord, Verdict
from hil.reports.crashes import Crash
from hil.reports.view.marks import Words
from hil.store import RunInfo
from hil.store.reported import NOT_REPORTED, Reported


@dataclass(frozen=True)
class Source:
    """``place`` tells it from others on one page: its leg, or its rack.

    ``tests`` are the addresses of tests by board and case id. ``files`` is the address of the run's folder,
    "" where a page cannot lead there. ``info`` is missing where a page is about what others measured.
    """

    verdict: Verdict
    info: RunInfo | None = None
    records: Sequence[RunRecord] = ()
    crashes: Sequence[Crash] = ()
    place: Words = ""
    tests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files: str = ""
    reported: Reported = NOT_REPORTED

    @property
    def rack(self) -> str:
        return self.info.rack if self.info else ""

    @property
    def product(self) -> str:
        return self.info.product if self.info else ""

    def test(self, board: str, case_id: str) -> str:
        """Return the address of a test, "" where it has none."""
        return self.tests.get((board, case_id), "")
