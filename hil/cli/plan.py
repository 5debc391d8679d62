# SPDX-License-Identifier: Apache-2.0
"""``hil plan``: what a run would measure, for people and for CI matrices."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.cli.options import boards_option, rack_option, suite_option, thresholds_option
from hil.model import short_case
from hil.run.plan import Plan, deadline_s, make_plan
from hil.run.plan.sharding import SHARD_MAX_S, bound_s, run_s, shard_of, shards_within, shares
from hil.thresholds import Thresholds, load_project


@click.command("plan")
@rack_option
@suite_option
@boards_option
@thresholds_option
@click.option("--json", "as_json", is_flag=True, help="A GitHub Actions matrix: one entry a board.")
@click.option(
    "--shards",
    default="",
    metavar="N",
    help="List what `hil run --shard` makes of N runs, with the minutes that they are planned to take; "
    "`auto`: as many as a night has.",
)
def command(
    rack: Path, suite: str, boards: tuple[str, ...], thresholds: Path, as_json: bool, shards: str
) -> None:
    """List boards, boots and cases."""
    benches = load_project(thresholds)
    plan = make_plan(load_rack(rack), benches, selection=suite, board_ids=boards)
    if shards:
        for line in shard_lines(plan, shards):
            click.echo(line)
        return
    if as_json:
        click.echo(json.dumps(matrix(plan, rack), sort_keys=True))
        return
    for line in lines(plan, benches):
        click.echo(line)


def shard_lines(plan: Plan, asked: str) -> list[str]:
    """Return what each of so many shards measures, and how long that takes. Raises ConfigError."""
    if asked != "auto" and not (asked.isdecimal() and int(asked) > 0):
        raise ConfigError(f"--shards {asked}: not a number of shards.", next_step="write 4, or auto.")
    of = shards_within(plan, SHARD_MAX_S) if asked == "auto" else int(asked)
    parts = [shard_of(plan, part) for part in shares(plan, of)]
    text = [
        f"planned: {_minutes(run_s(plan))} in one run on {', '.join(one.board.id for one in plan.boards)}"
    ]
    for number, part in enumerate(parts, start=1):
        cases = {case.case_id for board in part.boards for case in board.cases}
        text.append(f"shard {number}/{of}: {_minutes(run_s(part))}, {len(cases)} cases")
    longest = _minutes(max(map(run_s, parts)))
    text.append(
        f"the longest: {longest}; no {of} shards could be through before {_minutes(bound_s(plan, of))}"
    )
    return text


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def matrix(plan: Plan, rack: Path) -> dict[str, list[dict[str, object]]]:
    """Return the plan as a GitHub Actions matrix."""
    entries: list[dict[str, object]] = []
    for board_plan in plan.boards:
        board = board_plan.board
        entries.append(
            {
                "rack": str(rack),
                "board": board.id,
                "target": board.target,
                "kind": board.kind,
                "labels": list(board.labels),
                "boots": len(board_plan.boots),
                "images": [str(stage.image) for stage in board_plan.stages],
                "cases": [case.case_id for case in board_plan.cases],
                "not_run": [omitted.case.case_id for omitted in board_plan.omitted],
                "deadline_s": round(sum(deadline_s(case) for boot in board_plan.boots for case in boot)),
            }
        )
    return {"include": entries}


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


def _times(count: int) -> str:
    return f" ({count} cases)" if count > 1 else ""
