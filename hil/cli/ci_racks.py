# SPDX-License-Identifier: Apache-2.0
"""What GitHub is asked so that nobody waits for a rack in vain."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

import click

from hil.base.errors import ConfigError, HilError
from hil.ci.plan import RACK_JOBS, CiPlan, read_plan
from hil.ci.racks import Job, await_racks, jobs_of, unanswered
from hil.cli.ci_steps import github_of_job, plan_option, say, write_outputs


def excuses_now(plan: CiPlan, left_nothing: Collection[str]) -> dict[str, str]:
    """Return what GitHub says of legs that left nothing; nothing where it does not answer."""
    if not any(plan.leg(name).job in RACK_JOBS for name in left_nothing):
        return {}
    try:
        return unanswered(plan, left_nothing, _jobs_of_this_run())
    except HilError as error:
        say(f"warning: nobody knows whether racks took their jobs: {error}\n")
        return {}


def _jobs_of_this_run() -> tuple[Job, ...]:
    """Return the jobs of the workflow run that this one is of. Raises ConfigError by hand; RigError."""
    token = os.environ.get("GITHUB_TOKEN", "")
    run_id, attempt = (os.environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
    if not (token and run_id.isdigit() and attempt.isdigit()):
        raise ConfigError(
            "GITHUB_TOKEN, GITHUB_RUN_ID and GITHUB_RUN_ATTEMPT do not name a workflow run.",
            next_step="do this in a job of GitHub Actions, with the permission actions: read.",
        )
    return jobs_of(github_of_job(token), int(run_id), int(attempt))


@click.command("await-racks")
@plan_option
def await_command(plan_path: Path) -> None:
    """Wait until racks have taken their jobs of this workflow run, for an hour at most.

    The output `unanswered` lists the legs whose racks have not. GITHUB_TOKEN may read actions.
    """
    plan = read_plan(plan_path)
    late = await_racks(_jobs_of_this_run)
    legs = [leg.name for leg in plan.legs if leg.job in RACK_JOBS and leg.target in late and not leg.skip]
    say("".join(f"{leg}: no rack took its job within an hour\n" for leg in legs) or "racks took their jobs\n")
    write_outputs({"unanswered": json.dumps(legs)})
