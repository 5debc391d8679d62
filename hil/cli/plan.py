# SPDX-License-Identifier: Apache-2.0
"""``hil plan``: what a run would measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from hil.boards.rack import load_rack
from hil.cli.options import run_options
from hil.model import short_case
from hil.run.campaign import BENCH_FOLDERS, DEFAULT_BUDGET_MIN, bench_stems, read_probes
from hil.run.plan import Plan, make_plan
from hil.run.plan.comparing import cases_of, compared, limited_alone, may_anything_block, with_looks
from hil.run.plan.looks import describe, pace_of
from hil.thresholds import Thresholds, load_project


@click.command("plan")
@run_options("plan")
def command(rack: Path, suite: str, boards: tuple[str, ...], thresholds: Path) -> None:
    """List boards, boots and cases, and when a comparison with a base is judged."""
    benches = load_project(thresholds)
    probes = read_probes(bench_stems(BENCH_FOLDERS), benches)
    plan = make_plan(load_rack(rack), benches, selection=suite, board_ids=boards, probes=frozenset(probes))
    for line in (*lines(plan, benches), *looks_of(plan, benches)):
        click.echo(line)


def lines(plan: Plan, thresholds: dict[str, Thresholds]) -> list[str]:
    """Return the plan for a reader."""
    text: list[str] = []
    for board_plan in plan.boards:
        board = board_plan.board
        boots = f"{len(board_plan.boots)} boot{'s' if len(board_plan.boots) > 1 else ''}"
        text.append(f"{board.id} ({board.target}): {boots}, {len(board_plan.cases)} cases")
        for stage in board_plan.stages:
            text += [f"  image {stage.image}:"] if stage.image.variant else []
            for case in stage.boots[0]:
                label = thresholds[case.bench].case_label(case.parameters)
                text.append(f"  {short_case(case.bench, label)}")
        reasons = Counter(omitted.reason for omitted in board_plan.omitted)
        text += [f"  not run: {reason}{_times(count)}" for reason, count in reasons.items()]
    return text


def looks_of(plan: Plan, thresholds: dict[str, Thresholds]) -> Iterator[str]:
    """Describe for each image after how many boots a comparison is judged, and how long it takes."""
    budget_s = 60.0 * DEFAULT_BUDGET_MIN
    for image in plan.images:
        cases = cases_of(plan, image)
        one = compared(plan, image, run_id="", rack="", role="base", candidate_sha256="", other_sha256="")
        if may_anything_block(one, cases, thresholds):
            looks = with_looks(one, plan, cases, thresholds, budget_s).looks
            yield f"{image} beside a base: {describe(looks, pace_of(plan.boards), budget_s)}"
            if alone := limited_alone(one, cases, thresholds):
                yield f"{image}: limits alone block by {', '.join(alone)}; no rule under compare: names them"


def _times(count: int) -> str:
    return f" ({count} cases)" if count > 1 else ""
