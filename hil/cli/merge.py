# SPDX-License-Identifier: Apache-2.0
"""``hil ci merge``: one run of shards, judged as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode, FirmwareError, HilError, RigError
from hil.base.untrusted import terminal
from hil.cli.options import out_option, undecided_option
from hil.store import ended, read_run
from hil.store.directory import JOURNAL


@click.command("merge")
@click.argument("folders", metavar="FOLDER...", nargs=-1, type=click.Path(path_type=Path))
@undecided_option
@click.option("--report/--no-report", default=True, help="Build the report in OUT/report.  [default: build]")
@out_option
def command(folders: tuple[Path, ...], out: Path, undecided_status: str, *, report: bool) -> int:
    """Make one run in OUT of the shards in FOLDERs (`hil run --shard K/N`), and judge it as one.

    A FOLDER is a run, or has runs in it. They must be of one suite, rack and commit, with the same limits. A
    shard that is not there leaves the run incomplete, and its cases are named. The exit code is the run's.
    """
    from hil.gate import judge
    from hil.reports.finish import ReportOptions, finish
    from hil.run.merging import merge_shards
    from hil.store.run_info import planned_boots
    from hil.store.verdicts import status_of
    from hil.thresholds import among_legs, own_limits

    runs = [found for folder in folders for found in runs_in(folder)]
    run = merge_shards(runs or raise_what_ended(folders), out)
    stored = read_run(run.path)
    limits = among_legs(own_limits(stored), int(stored.info.get("legs", 1)))
    verdict = judge(stored.journal.entries, limits, planned_boots(stored.info))
    run.write_verdict(verdict)
    done = finish(run, ReportOptions(out, site=report), say=lambda _sentence: None)
    click.echo(terminal(f"{run.path}: {verdict.sentence}", _MOST_CHARACTERS))
    for warning in done.warnings:
        click.echo(terminal(f"warning: {warning}", _MOST_CHARACTERS), err=True)
    code = status_of(stored.info, verdict)
    return int(undecided_status if code == ExitCode.UNDECIDED and verdict.is_neutral else code)


_MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut


def runs_in(folder: Path) -> list[Path]:
    """Return the folder where it is a run, else the runs in it, at any depth. Raises ConfigError: none."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder.", next_step="name where the shards' runs are.")
    return sorted(path.parent for path in folder.rglob(JOURNAL))


_ERRORS: dict[str, type[HilError]] = {"configuration": ConfigError, "firmware": FirmwareError}


def raise_what_ended(folders: Sequence[Path]) -> list[Path]:
    """Raise what the first shard says that ended before it had a run; return nothing where none says so."""
    for path in sorted(found for folder in folders for found in folder.rglob(ended.ENDED)):
        if said := ended.read(path):
            error = _ERRORS.get(said.owner, RigError)
            raise error(f"no shard left a run; {path.parent.name}: {said.sentence}", next_step=said.next_step)
    return []
