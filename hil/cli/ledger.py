# SPDX-License-Identifier: Apache-2.0
"""``hil ledger``: where a run lost messages, point by point."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hil.cli.options import DEFAULT_OUT, boards_option
from hil.network.ledger.of_run import chosen, json_of, sum_of, text_of
from hil.store import RunDirectory


@click.command("ledger")
@click.argument("run", type=click.Path(path_type=Path), default=DEFAULT_OUT / "latest")
@boards_option
@click.option(
    "--case", "text", default="", metavar="TEXT", help="Only cases whose id or short name contains TEXT."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per case and boot.")
def command(run: Path, boards: tuple[str, ...], text: str, *, as_json: bool) -> None:
    """Show where the messages of RUN's delivery cases were lost; docs/explain/loss-ledger.md.

    RUN is a folder below out, by default the latest.
    """
    directory = RunDirectory.open(run)
    journal = directory.read()
    cases = chosen(directory, journal.records, boards, text)
    if as_json:
        click.echo(json.dumps([json_of(case) for case in cases], ensure_ascii=False, indent=2))
        return
    for case in cases:
        click.echo("\n".join([*text_of(case), ""]))
    click.echo(sum_of(cases))
    if journal.torn:
        click.echo(journal.torn)
