# SPDX-License-Identifier: Apache-2.0
"""``hil ci racks``: what GitHub is asked so that nobody waits for a rack in vain."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime

import click

from hil.base.errors import ConfigError, HilError
from hil.ci import rack_issues, rack_switch, rack_watch, racks
from hil.ci.plan import RACK_JOBS, CiPlan
from hil.cli.ci_steps import github_of_job, racks_off_option, say, write_outputs


def excuses_now(plan: CiPlan, left_nothing: Iterable[str]) -> dict[str, str]:
    """Return what GitHub says of legs that left nothing; nothing where it does not answer."""
    try:
        if any(plan.leg(name).job in RACK_JOBS for name in left_nothing):
            return _excuses_of_racks(plan, left_nothing)
    except HilError as error:
        say(f"warning: nobody knows why a leg left nothing: {error}\n")
    return {}


def _excuses_of_racks(plan: CiPlan, left_nothing: Iterable[str]) -> dict[str, str]:
    token = os.environ.get("GITHUB_TOKEN", "")
    run_id, attempt = (os.environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
    if not (token and run_id.isdigit() and attempt.isdigit()):
        return {}
    jobs = racks.jobs_of(github_of_job(token), int(run_id), int(attempt))
    patience = racks.patience_of(os.environ.get(racks.PATIENCE, ""))
    return racks.unanswered(plan, left_nothing, jobs, patience)


def racks_left_out(off: str) -> dict[str, str]:
    """Return why the rack of a chip measures nothing: switched off, or known not to answer.

    Raises ConfigError where the variable is malformed. Where GitHub does not answer, racks are waited for.
    """
    switched_off = rack_switch.racks_off(off)
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        return switched_off
    try:
        silent = rack_issues.open_issues(github_of_job(token))
    except HilError as error:
        say(f"warning: nobody knows which racks answer, so all are waited for: {error}\n")
        return switched_off
    return {**{chip: issue.reason for chip, issue in silent.items()}, **switched_off}


@click.command("racks")
@click.option(
    "--patience",
    default="",
    envvar=racks.PATIENCE,
    show_envvar=True,
    metavar="MINUTES",
    help="Of silence while jobs wait.  [default: 60]",
)
@racks_off_option
@click.option(
    "--owner",
    default="",
    envvar="HIL_LAB_OWNER",
    show_envvar=True,
    metavar="LOGIN",
    help="Whom the issue on a silent rack is assigned to.",
)
def racks_command(patience: str, racks_off: str, owner: str) -> None:
    """Find racks that do not answer: open an issue for the lab, and end runs that wait for nothing else.

    A rack is silent where jobs have waited for its chip as long as the patience, and none was in progress or
    ended meanwhile. The output `unprobed` lists those on which no probe waits. GITHUB_TOKEN may write actions
    and issues.
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise ConfigError(
            "GITHUB_TOKEN is not set, so nobody can be asked for jobs.",
            next_step="set it, with Actions and Issues: write.",
        )
    seen = rack_watch.watch(
        github_of_job(token),
        datetime.now(UTC),
        racks.patience_of(patience),
        rack_switch.racks_off(racks_off),
        owner,
    )
    say("".join(f"{line}\n" for line in seen.done) or "no rack is silent, and no run waits in vain\n")
    write_outputs({"unprobed": json.dumps(seen.unprobed)})
