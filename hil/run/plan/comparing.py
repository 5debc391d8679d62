# SPDX-License-Identifier: Apache-2.0
"""How many boots a comparison may take, and when it is looked at: known before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hil.base.project import product_here
from hil.boards.firmware.build_folder import Image
from hil.gate.pairs import may_be_limited, may_block
from hil.metrics.metric import Metric
from hil.model import Case, Comparison, Role
from hil.run.plan.looks import pace_of, plan_looks
from hil.run.plan.planning import Plan
from hil.thresholds.types import Thresholds


def compared(
    plan: Plan, image: Image, *, run_id: str, rack: str, role: Role, candidate_sha256: str, other_sha256: str
) -> Comparison:
    """Return what a run compares on the boards of an image; its looks are chosen by with_looks()."""
    boards = [board for board in plan.boards if any(stage.image == image for stage in board.stages)]
    cases = {case.case_id for case in cases_of(plan, image)}
    return Comparison(
        run_id=run_id,
        rack=rack,
        image=str(image),
        target=image.target,
        boards=tuple(board.board.id for board in boards),
        role=role,
        candidate_sha256=candidate_sha256,
        other_sha256=other_sha256,
        looks=((1, 1),),
        cases=tuple(sorted(cases)),
        product=product_here(),
    )


def identical(comparison: Comparison) -> Comparison:
    """Return the comparison of an image with itself: nothing is measured."""
    return replace(comparison, looks=(), identical=True)


def cases_of(plan: Plan, image: Image) -> tuple[Case, ...]:
    """Return each case that some board measures on an image, once."""
    found = [case for board in plan.boards for case in cases_on(plan, board.board.id, image)]
    return tuple({case.case_id: case for case in found}.values())


def cases_on(plan: Plan, board: str, image: Image) -> tuple[Case, ...]:
    """Return the cases that a board measures on an image."""
    return tuple(
        case for stage in plan.for_board(board).stages if stage.image == image for case in stage.boots[0]
    )


def with_looks(
    comparison: Comparison,
    plan: Plan,
    cases: Sequence[Case],
    thresholds: Mapping[str, Thresholds],
    budget_s: float,
) -> Comparison:
    """Return the comparison with the looks after which it is judged.

    The smallest ``max_boots`` of the benches involved bounds them, and the budget, all boards of the plan
    considered. Where nothing may block, there is one look.
    """
    benches = {case.bench for case, _metric in _blocking(comparison, cases, thresholds)}
    most = min((thresholds[bench].policy.max_boots for bench in benches), default=0)
    pace = pace_of(plan.boards)
    looks = plan_looks(pace, max_boots=most, budget_s=budget_s)
    return replace(comparison, looks=looks, boot_s=round(pace.more_boot_s(), 1))


def limited_alone(
    comparison: Comparison, cases: Sequence[Case], thresholds: Mapping[str, Thresholds]
) -> tuple[str, ...]:
    """Return the metrics that an absolute limit may block, and no comparison in any case."""
    compared_ones = {metric.name for _case, metric in _blocking(comparison, cases, thresholds)}
    limited = {
        metric.name: None
        for case in cases
        for metric in thresholds[case.bench].metrics_of(case.parameters)
        if may_be_limited(comparison, case, metric, thresholds[case.bench])
    }
    return tuple(name for name in limited if name not in compared_ones)


def may_anything_block(
    comparison: Comparison, cases: Sequence[Case], thresholds: Mapping[str, Thresholds]
) -> bool:
    """Return whether a rule under ``compare:`` is for some case of the comparison."""
    return any(True for _ in _blocking(comparison, cases, thresholds))


def _blocking(
    comparison: Comparison, cases: Sequence[Case], thresholds: Mapping[str, Thresholds]
) -> Iterator[tuple[Case, Metric]]:
    for case in cases:
        own = thresholds[case.bench]
        for metric in own.metrics_of(case.parameters):
            if may_block(comparison, case, metric, own):
                yield case, metric
