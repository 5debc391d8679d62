# SPDX-License-Identifier: Apache-2.0
"""``hil evidence``: a fixed programme on a rack, packed as one file; and such a file looked at."""

from __future__ import annotations

import dataclasses
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.base.reading import SEGMENT_MOST_BYTES, read_at_most
from hil.base.untrusted import terminal
from hil.boards.rack import Rack, load_rack
from hil.cli.options import out_option, rack_option
from hil.store.files import disk_error
from hil.store.run_info import utc_now

if TYPE_CHECKING:
    from hil.evidence.report import Evidence, StepReport


@click.group("evidence", invoke_without_command=True)
@rack_option
@click.option(
    "--firmware",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Measure this bundle, or this build; build nothing.",
)
@click.option(
    "--planted",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The same with a slowdown in it (hil build --plant-publish-us N); else it is built.",
)
@click.option("--thresholds", type=click.Path(path_type=Path), help="Folder of limits and suites.")
@click.option("--no-person", is_flag=True, help="Leave out what a person is asked to do.")
@click.option(
    "--anonymous",
    is_flag=True,
    help="Replace MAC addresses' last half, Wi-Fi and host name, USB serial numbers.",
)
@click.option("--again", multiple=True, metavar="STEP", help="Do this step once more; repeatable.")
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold.")
@out_option
@click.pass_context
def command(
    context: click.Context,
    *,
    rack: Path,
    firmware: Path | None,
    planted: Path | None,
    thresholds: Path | None,
    no_person: bool,
    anonymous: bool,
    again: tuple[str, ...],
    wait: float,
    out: Path,
) -> int | None:
    """Do the programme of docs/start/evidence-kit.md on a rack, and pack what it shows as one file to send.

    After Ctrl-C the same command goes on; what was skipped is asked again. Exits with 0 where each step came
    out as expected, with 4 where one differs or was skipped.
    """
    if context.invoked_subcommand:
        return None
    from hil.evidence.doing import Asked, Programme, begin, folder_of
    from hil.evidence.programme import steps
    from hil.evidence.report import EVIDENCE, lines, parse_evidence

    loaded = load_rack(rack)
    known = [step.name for step in steps()]
    if unknown := [name for name in again if name not in known]:
        raise ConfigError(f"there is no step {unknown[0]!r}.", next_step=f"name one of: {', '.join(known)}.")
    for option, folder in (("--firmware", firmware), ("--planted", planted)):
        if folder and not folder.is_dir():
            raise ConfigError(f"{option} {folder}: there is no such folder.", next_step="check the path.")
    nobody = "nobody is asked (--no-person)" if no_person else "nobody is at a terminal"
    asked = Asked(
        rack=loaded,
        out=out,
        firmware=firmware,
        planted=planted,
        thresholds=thresholds,
        wait_s=wait,
        person=_ask if not no_person and sys.stdin.isatty() else None,
        nobody=nobody,
        say=lambda line: click.echo(line),
    )
    state = folder_of(out, loaded) / EVIDENCE
    if state.is_file():
        evidence = parse_evidence(str(state), read_at_most(state, SEGMENT_MOST_BYTES))
        _check_same(evidence, begin(loaded, {}), state)
        click.echo(f"Going on with what was begun {evidence.started_utc}: {state}")
    else:
        evidence = begin(loaded, _host())
    programme = Programme(asked, evidence)
    with programme.alone():
        evidence = programme.go_on(again)
        packed, evidence = _pack(programme.folder, asked.out, evidence, loaded, anonymous=anonymous)
    click.echo()
    for line in lines(evidence):
        click.echo(line)
    click.echo(f"To send: {packed} ({packed.stat().st_size:,} B). Look at it: hil evidence show {packed}")
    return int(_status(evidence))


def _check_same(evidence: Evidence, now: Evidence, state: Path) -> None:
    """Raise ConfigError where the programme was begun with other boards, or is another one by now."""
    same = [(one.boards, one.kind, tuple(step.name for step in one.steps)) for one in (evidence, now)]
    if same[0] != same[1]:
        raise ConfigError(
            f"{state} was begun {evidence.started_utc} with other boards, or by another version of hil.",
            next_step="put the rack file back as it was, or begin anew: "
            f"mv {state.parent} {state.parent}.old",
        )


def _ask(prompt: str) -> str:
    """Return what a person types; "skip" where the terminal is gone."""
    click.echo(prompt, nl=False)
    line = sys.stdin.readline()
    return line if line else "skip"


def _host() -> dict[str, str]:
    found = {"host": platform.node(), "system": platform.platform(), "cpus": str(os.cpu_count())}
    return {**found, "python": platform.python_version()}


def _pack(
    folder: Path, out: Path, evidence: Evidence, rack: Rack, *, anonymous: bool
) -> tuple[Path, Evidence]:
    """Write the file that is sent; return it, and the evidence as it stands in there. Raises RigError."""
    from hil.evidence.archive import pack
    from hil.evidence.doing import FOLDER
    from hil.evidence.redact import Redactor

    now = utc_now()
    to = out.absolute() / FOLDER / f"evidence-{rack.name}-{now[:10]}.tar.gz"
    whole = dataclasses.replace(evidence, packed_utc=now, anonymous=anonymous)
    try:
        return to, pack(whole, folder, to, Redactor(rack, anonymous=anonymous))
    except OSError as error:
        raise disk_error(f"could not write {to}", error, f"what was measured, in {folder}") from error


def _status(evidence: Evidence) -> ExitCode:
    as_expected = all(step.result == "ok" for step in evidence.steps)
    return ExitCode.PASS if as_expected else ExitCode.UNDECIDED


@command.command("show")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def show(file: Path) -> int:
    """Check a file that somebody sent, judge its runs again from their records, and print its table.

    Nothing of it is kept. Exits with 0 where each step came out as expected and the records say so too, with
    4 where not, with 2 where it is no such file.
    """
    from hil.evidence.archive import unpack
    from hil.evidence.report import lines

    with tempfile.TemporaryDirectory(prefix="hil-evidence-") as folder:
        evidence = unpack(file, Path(folder))
        runs, physical = Path(folder) / "runs", evidence.kind == "physical"
        notes = [note for step in evidence.steps for note in _doubts(step, runs, physical=physical)]
    for line in lines(evidence, notes):
        click.echo(line)
    own = [step.name for step in evidence.steps if step.result == "ok" and not step.runs]
    if own:
        click.echo(terminal(f"Its own word only, without records: {', '.join(own)}."))
    click.echo("Each run was judged again from its records." if not notes else "Believe the records.")
    return int(ExitCode.UNDECIDED if notes else _status(evidence))


def _doubts(step: StepReport, runs: Path, *, physical: bool) -> Iterator[str]:
    """Yield what a step says otherwise than its records do."""
    from hil.evidence.judging import JUDGED, contradiction, found_in
    from hil.store import read_run

    try:
        stored = [read_run(runs / run) for run in step.runs]
        for run in stored:
            if otherwise := contradiction(run):
                yield f"! {step.name}: the verdict of {run.run_id} contradicts its records: {otherwise}"
        found = found_in(step.name, stored)
    except HilError as error:
        yield f"! {step.name}: its records cannot be judged again: {error}"
        return
    except Exception as error:  # others wrote them
        yield f"! {step.name}: its records cannot be judged again ({type(error).__name__})"
        return
    kinds = {record.kind for run in stored for record in run.records}
    if physical and kinds - {"physical"}:
        yield f"! {step.name}: called physical, and its records are {' and '.join(sorted(kinds))}"
    if step.result == "ok" and step.name in JUDGED and found is None:
        yield f"! {step.name}: says ok, and there is no run that shows it"
    if found and step.result in ("ok", "differs") and found[0] != (step.result == "ok"):
        now = "ok" if found[0] else "otherwise"
        yield f"! {step.name}: says {step.result}, and its records say {now}: {found[1]}"
