# SPDX-License-Identifier: Apache-2.0
"""``hil metrics``: push a stored run again, and take a retired board's figures from the Pushgateway."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hil.base.errors import ConfigError
from hil.boards.rack import Rack, load_rack
from hil.store import read_judged_run

F = TypeVar("F", bound=Callable[..., Any])


def _url_option(function: F) -> F:
    text = "The gateway. [default: what a rack file says]"
    return click.option(
        "--pushgateway", default="", metavar="URL", envvar="HIL_PUSHGATEWAY", show_envvar=True, help=text
    )(function)


@click.group("metrics")
def command() -> None:
    """What a Pushgateway holds of runs and boards; docs/operate/metrics.md."""


@command.command("push", short_help="Push a stored run again.")
@click.argument("run", type=click.Path(path_type=Path))
@_url_option
@click.option("--rack", type=click.Path(path_type=Path), help="Rack file that names the gateway.")
@click.option("--force", is_flag=True, help="Also where the gateway holds a newer run of the same boards.")
def push(run: Path, pushgateway: str, rack: Path | None, *, force: bool) -> None:
    """Push the metrics of RUN (a folder below out), for example after the gateway was down."""
    url = _url(pushgateway, load_rack(rack) if rack else None)
    from hil.reports.metrics_command import push_again

    push_again(url, read_judged_run(run), force=force)


@command.command("retire", short_help="Delete boards' groups at the gateway.")
@click.argument("boards", metavar="BOARD...", nargs=-1, required=True)
@click.option("--rack", required=True, metavar="FILE|NAME", help="The boards' rack: its file, or its name.")
@_url_option
@click.option("--product", metavar="NAME", help="Only what was pushed for this product; '' for none.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
def retire(
    boards: tuple[str, ...], rack: str, pushgateway: str, product: str | None, *, dry_run: bool
) -> None:
    """Delete what the Pushgateway holds of BOARD, of every job and product, and say what it was."""
    loaded = _rack_file(rack)
    url = _url(pushgateway, loaded)
    for board in loaded.boards if loaded else ():
        if board.id in boards:
            click.echo(f"note: {rack} still lists {board.id}; its next run pushes it again.", err=True)
    name = loaded.name if loaded else rack
    from hil.reports.metrics_command import retire as retire_boards

    retire_boards(url, name, boards, product=product, dry_run=dry_run)


def _url(asked: str, rack: Rack | None) -> str:
    url = asked or (rack.pushgateway if rack else "")
    if not url:
        raise ConfigError(
            "no Pushgateway is named, neither here nor in a rack file.",
            next_step="name it: --pushgateway http://lab.example:9091",
        )
    return url


def _rack_file(rack: str) -> Rack | None:
    """Return the rack of a file; None where ``rack`` is a name."""
    looks_like_a_file = os.sep in rack or rack.endswith((".yaml", ".yml")) or Path(rack).is_file()
    return load_rack(Path(rack)) if looks_like_a_file else None
