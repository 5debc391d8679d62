# SPDX-License-Identifier: Apache-2.0
"""What `hil ci plan` makes of a group of the merge queue."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hil.ci.event import Event
from hil.ci.plan import CiPlan
from hil.ci.queue import MINUTES, in_queue, minutes_of
from hil.cli.ci_steps import github_of_job, say
from hil.cli.options import F


def queue_option(function: F) -> F:
    """Add how long a group of the merge queue may wait."""
    return click.option(
        "--queue-minutes",
        default="",
        envvar="HIL_QUEUE_MINUTES",
        show_envvar=True,
        metavar="MINUTES",
        help="Within which a merge group is to have its verdict; racks only where they fit.  "
        f"[default: {MINUTES}]",
    )(function)


def as_queued(plan: CiPlan, event: Event, queue_minutes: str) -> CiPlan:
    """Return the plan of a merge group, any other as it is; say why it is measured. Raises ConfigError."""
    if not event.group_ref:
        return plan
    minutes = minutes_of(queue_minutes)
    token = os.environ.get("GITHUB_TOKEN", "")
    queued, why = in_queue(plan, event, Path.cwd(), github_of_job(token) if token else None, minutes=minutes)
    if why:
        say(f"the group is measured: {why}\n")
    return queued
