# SPDX-License-Identifier: Apache-2.0
"""What tests cost, as the end of `make test` tells it."""

from __future__ import annotations

import pytest

from tests.costs import PROPERTY, table


def report(nodeid: str, processor_s: float, *marks: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid, (nodeid, 0, nodeid), dict.fromkeys(marks, 1), "passed", None, "teardown",
        user_properties=[(PROPERTY, processor_s)],
    )  # fmt: skip


def test_the_dearest_file_comes_first_and_all_are_summed() -> None:
    """Costs are added up by file; a test that is both slow and heavy is heavy."""
    told = table(
        [
            report("a.py::one", 1.0),
            report("b.py::one", 2.0, "slow"),
            report("b.py::two", 3.5, "slow", "heavy"),
        ]
    )
    assert [line.split() for line in told[:2]] == [["5.5", "s", "b.py"], ["1.0", "s", "a.py"]]
    total = " ".join(told[2].split())
    assert total == "6.5 s of processor time in 2 files: 1 fast, 1 slow, 1 heavy tests"
