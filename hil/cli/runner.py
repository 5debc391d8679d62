# SPDX-License-Identifier: Apache-2.0
"""``hil runner``: the files that make a rack's host a runner of GitHub Actions, and registrations for it."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path

import click

from hil.base.errors import ConfigError, RigError
from hil.boards.rack import load_rack
from hil.ci.github import DEFAULT_API, GitHub
from hil.ci.runner import host_files
from hil.ci.runner.mint import SSH, RackHost, ask_all, serve, serve_once
from hil.cli.options import rack_option

instances_option = click.option(
    "--instances",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many jobs the rack takes at once; its queue gives them boards.",
)


@click.group("runner")
def command() -> None:
    """Set up a rack's host as a GitHub Actions runner: one registration per job."""


@command.command("files")
@rack_option
@click.option(
    "--rack-file",
    default="/etc/hil/rack.yaml",
    show_default=True,
    metavar="PATH",
    help="Where the rack file is on that host.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("hil-runner"),
    show_default=True,
    help="Folder for the files.",
)
@instances_option
def write_files(*, rack: Path, rack_file: str, into: Path, instances: int) -> None:
    """Write what a rack's host needs: systemd's units, udev's rules, the root helper, install.sh.

    Read them, then run `sudo sh install.sh` in the folder, on the host.
    """
    found = host_files(load_rack(rack), rack_file, instances)
    into.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        (into / name).write_text(text, encoding="utf-8")
    click.echo(f"{len(found)} files in {into}. Read them; then, on the rack's host: sudo sh install.sh")


@command.command("serve")
@click.option("--repo", required=True, metavar="OWNER/REPO", help="The repository whose jobs the rack takes.")
@click.option(
    "--to", required=True, metavar="USER@HOST", help="The rack's host, by ssh, as the user of its inbox."
)
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="A chip on the rack, such as esp32; repeatable."
)
@click.option(
    "--group", default=1, show_default=True, metavar="ID", help="The runner group; 1 is the default one."
)
@instances_option
@click.option("--once", is_flag=True, help="Ask once, and end.")
@click.option(
    "--ssh", default=shlex.join(SSH), show_default=True, metavar="COMMAND", help="What reaches the host."
)
def serve_rack(
    *,
    repo: str,
    to: str,
    labels: tuple[str, ...],
    group: int,
    instances: int,
    once: bool,
    ssh: str,
) -> None:
    """Give the rack's host a registration for one job when a runner asks for it. Run it away from the rack.

    HIL_RUNNER_TOKEN is a token that may register runners ("Administration: write"); it stays on this machine.
    GITHUB_API_URL names another server than api.github.com.
    """
    token = os.environ.get("HIL_RUNNER_TOKEN", "")
    if not token:
        raise ConfigError(
            "HIL_RUNNER_TOKEN is not set, so no runner can be registered.",
            next_step="set it to a token with the repository permission Administration: write.",
        )
    github = GitHub(repo, token, os.environ.get("GITHUB_API_URL") or DEFAULT_API)
    hosts = [RackHost(to, shlex.split(ssh), instance) for instance in range(1, instances + 1)]
    words = {
        "wanted": "a registration was wanted, and is there.",
        "waiting": "it has a registration, and waits for a job.",
        "busy": "a job runs, or a runner waits for one.",
    }

    def ask(host: RackHost) -> str:
        return f"{to}, runner {host.instance}: {words[serve_once(github, host, labels, group)]}"

    asks = [partial(ask, host) for host in hosts]
    if not once:
        serve(asks, click.echo)
    answers = list(ask_all(asks))
    for answer in answers:
        click.echo(str(answer))
    for error in answers:
        if isinstance(error, RigError):
            raise error
