"""What of a plan is kept, and what a case that was not measured means for the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards.rack import load_rack
from hil.fixtures.options import kept_plan
from hil.gate.conclusion import conclude
from hil.model import Case, NotRun, Outcome, SeriesVerdict
from hil.run.plan import BoardPlan, Omitted, Plan, make_plan
from tests.test_plan import BENCHES

RACK = load_rack(Path(__file__).resolve().parent.parent / "hil" / "racks" / "virtual.yaml")
V1, V2 = RACK.boards[:2]
A, B, C = (Case("publish", {"qos": qos}) for qos in (0, 1, 2))
PASSED = SeriesVerdict(
    "s", "v1", "virtual", "virtual-esp32", "c", "m", "us", "pass", True, "fine", samples=60
)


def test_the_plan_keeps_what_pytest_keeps() -> None:
    """Cases that were deselected are in no boot, and boards without any case are not in the plan."""
    omitted = (Omitted(C, "too large"),)
    plan = Plan("quick", (BoardPlan(V1, ((A, B), (A, B)), omitted), BoardPlan(V2, ((A, B),), omitted)))
    kept = kept_plan(plan, {(V1.id, B.case_id)})
    assert kept == Plan("quick", (BoardPlan(V1, ((B,), (B,)), ()),))
    assert kept_plan(plan, {(V2.id, C.case_id)}).boards == (BoardPlan(V2, (), omitted),)


def test_a_boards_own_limit_is_no_missing_case() -> None:
    """A case that the plan leaves out by a board's limits does not touch the verdict."""
    small = replace(V1, limits={"max_payload_bytes": 64})
    (board,) = make_plan(replace(RACK, boards=(small,)), BENCHES, selection="nightly and publish").boards
    assert board.omitted
    not_run = tuple(
        NotRun("r", "v1", item.case.case_id, item.reason, expected=False) for item in board.omitted
    )
    found = conclude("r", (PASSED,), (), not_run, fail_inconclusive=False)
    assert (found.exit_code, found.outcome) == (0, "pass")


@pytest.mark.parametrize(("outcome", "exit_code"), [("pass", 4), ("regressed", 1)])
def test_a_planned_case_that_was_not_measured_is_no_pass(outcome: Outcome, exit_code: int) -> None:
    """It makes the run inconclusive and the sentence says so; a broken limit still decides."""
    missing = (NotRun("r", "v1", "publish/x", "the run was stopped"),)
    series = (replace(PASSED, outcome=outcome),)
    found = conclude("r", series, (), missing, fail_inconclusive=False)
    assert found.exit_code == exit_code
    assert ("1 planned case not measured." in found.sentence) == (exit_code == 4)
    partly = NotRun("r", PASSED.board, PASSED.case_id, "in 2 of 3 boots: the run was stopped")
    found = conclude("r", series, (), (*missing, partly), fail_inconclusive=False)
    assert found.exit_code == exit_code
    words = "1 planned case not measured, 1 planned case not measured in every boot."
    assert (words in found.sentence) == (exit_code == 4)
