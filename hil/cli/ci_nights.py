# SPDX-License-Identifier: Apache-2.0
"""``hil ci speak``: the issues that tell of the nights' events."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from hil.base.errors import ConfigError, HilError
from hil.base.untrusted import markdown
from hil.ci.event_issues import speak
from hil.cli.ci_steps import github_of_job, say, summarise

_MOST_BYTES = 64 * 1024 * 1024


@click.command("speak")
@click.argument("trend", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--report-url", default="", envvar="HIL_REPORT_URL", show_envvar=True, metavar="URL",
    help="Where the report is deployed.",
)  # fmt: skip
def speak_command(trend: Path, report_url: str) -> None:
    """Open an issue for each new event of TREND, a report's trend/trend.json; close those that are over.

    GITHUB_TOKEN may write issues. Where GitHub refuses that, it is said, and nothing fails.
    """
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise ConfigError(
            "GITHUB_TOKEN is not set, so no issue can be opened.", next_step="set it, with Issues: write."
        )
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    found = _read(trend)
    try:
        done = speak(github_of_job(token), found, report_url, server)
    except HilError as error:
        done = [f"the issues of the nights' events are not up to date: {error}"]
    lines = done or ["no event is open, so no issue was opened"]
    say("".join(f"{line}\n" for line in lines))
    page = "".join(f"- {markdown(line)}\n" for line in lines)
    summarise(f"## Issues of events\n\n{page}", whole="the job's log")


def _read(path: Path) -> object:
    if path.stat().st_size > _MOST_BYTES:
        raise ConfigError(f"{path.name} has more than {_MOST_BYTES} bytes.", next_step="report fewer nights.")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path.name} is no JSON.", next_step="build the report again.") from error
