# SPDX-License-Identifier: Apache-2.0
"""What tests cost: processor time of each file, with the programs that its tests started and waited for."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterable

import pytest

PROPERTY = "processor_s"
DEAREST = 10


def used_s() -> float:
    """Return the processor seconds of this process and of all that it started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return the dearest files, the number of tests of each level, and the sum of all.

    What a fixture of the session or a module costs is counted to the first test that asks for it.
    """
    files: Counter[str] = Counter()
    levels: Counter[str] = Counter()
    for report in reports:
        files[report.nodeid.partition("::")[0]] += dict(report.user_properties).get(PROPERTY, 0)
        levels[_level(report)] += 1
    lines = [f"{cost:8.1f} s  {name}" for name, cost in files.most_common(DEAREST)]
    counts = ", ".join(f"{levels[level]:,} {level}" for level in ("fast", "slow", "heavy") if levels[level])
    return [*lines, f"{sum(files.values()):8.1f} s of processor time in {len(files)} files: {counts} tests"]


def _level(report: pytest.TestReport) -> str:
    return next((level for level in ("heavy", "slow") if level in report.keywords), "fast")
