# SPDX-License-Identifier: Apache-2.0
"""``hil rack``: is everything there, who holds what, and how it fared.

``hil rack health``: what the lab keeper looks at first.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from hil.base.errors import ConfigError, RigError
from hil.base.finding import Finding
from hil.base.untrusted import code, terminal
from hil.base.untrusted import markdown as markdown_text
from hil.boards.lease import lease_boards, lock_dir, read_holder
from hil.boards.quarantine import describe, folder_of, read_quarantine, reason
from hil.boards.rack import Board, Rack, load_rack
from hil.boards.rack.check import check_rack
from hil.boards.supply_proof import prove_power
from hil.cli.board import virtual_switch
from hil.cli.options import aligned, out_option, rack_option, warn
from hil.cli.qualify import command as qualify
from hil.cli.status import command as status
from hil.history import history_of
from hil.history.files import read_past
from hil.history.from_run import figures_of
from hil.history.health.summary import DEFAULT_DAYS, summarise
from hil.history.health.types import BoardHealth, RackHealth
from hil.history.health.words import HEAD, advice, cells, kinds, moment, rack_lines, runs_of
from hil.history.summary import Summary
from hil.model import Quarantine
from hil.network.access_point import check_access_point
from hil.network.capture import Capture
from hil.network.name_server import check_leases
from hil.network.process import LocalSpawner
from hil.network.shaping import check_shaping
from hil.store import RunDirectory, read_run
from hil.store.run_info import utc_now
from hil.virtual.emulator import drivers
from hil.virtual.virtual_rack import boards_up

_LEAST = ("kind", "target", "MTTR")  # the first is left out first


@click.command("health")
@rack_option
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=DEFAULT_DAYS,
    show_default=True,
    metavar="N",
    help="Look at the last N days.",
)
@click.option("--fail-on-down", is_flag=True, help="Exit 3 if a board is down and not in quarantine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a workflow.")
@out_option
def health(*, rack: Path, days: int, fail_on_down: bool, as_json: bool, markdown: bool, out: Path) -> None:
    """Show how often a rack failed, the owners of the faults, recovery times and boards to keep out.

    It reads the history in OUT, and the killed runs in OUT that are not in the history.
    """
    loaded = load_rack(rack)
    whole = _health_of(loaded, out, days)
    found, gone = _without_others(whole, loaded)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), ensure_ascii=False))
    else:
        for line in markdown_lines(found, rack) if markdown else lines(found, rack, width):
            click.echo(line)
        for line in [*_gone_lines(gone, rack), *_stray_lines(loaded, rack, out)]:
            click.echo(f"- {markdown_text(line)}\n" if markdown else terminal(line))
    down = [board for board in found.boards if board.down_since_utc and not board.quarantine]
    if fail_on_down and down:
        names = ", ".join(board.board for board in down)
        last = terminal(down[0].last_fault) or "unknown"
        raise RigError(
            f"{'boards' if len(down) > 1 else 'board'} {names} of rack {loaded.name} "
            f"{'are' if len(down) > 1 else 'is'} down; the last fault: {last}",
            next_step="hil rack check, and mend it; or keep it out of runs: "
            "hil board quarantine BOARD --why TEXT",
        )


def lines(rack: RackHealth, rack_file: Path, width: int | None = None) -> Iterator[str]:
    """Yield the health for a reader: a line a board with what went wrong last, the rack, the advice.

    On a terminal of ``width`` columns a board stays on its line: what tells least is left out, and named.
    """
    yield f"rack {rack.rack} ({kinds(rack)}), the last {rack.days} days: {runs_of(rack)}"
    (head, *rows), left_out = _fitting([HEAD, *map(cells, rack.boards)], width)
    yield head
    for board, row in zip(rack.boards, rows, strict=True):
        yield row
        if board.quarantine:
            yield f"  {terminal(describe(board.quarantine))}"
        if board.last_fault:  # it may quote what a board said
            yield f"  last fault: {terminal(board.last_fault)}"
    if left_out:
        yield f"({', '.join(left_out)}: in a wider window, or --json)"
    yield from rack_lines(rack)
    yield from (f"→ {line}" for line in advice(rack, rack_file))


def _fitting(rows: list[tuple[str, ...]], width: int | None) -> tuple[list[str], list[str]]:
    """Return the table's lines, and the columns that had to go for them to fit."""
    left_out: list[str] = []
    for name in _LEAST:
        if width is None or max(map(len, aligned(rows))) <= width:
            break
        column = rows[0].index(name)
        rows = [row[:column] + row[column + 1 :] for row in rows]
        left_out.append(name)
    return aligned(rows), left_out


def markdown_lines(rack: RackHealth, rack_file: Path) -> Iterator[str]:
    """Yield the health as Markdown."""
    yield f"## Rack {rack.rack} ({kinds(rack)}), the last {rack.days} days: {runs_of(rack)}\n"
    rows = [_markdown_row(*cells(board), board.last_fault) for board in rack.boards]
    for row in ((*HEAD, "last fault"), ("---",) * (len(HEAD) + 1), *rows):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield from (f"- {markdown_text(line)}" for line in (*rack_lines(rack), *advice(rack, rack_file)))
    yield ""


def _markdown_row(board: str, *others: str) -> tuple[str, ...]:
    return (code(board), *map(markdown_text, others))


def _health_of(rack: Rack, out: Path, days: int) -> RackHealth:
    """Return the rack's health, with the boards of its file that no run knows yet."""
    quarantined = read_quarantine(folder_of(rack, out))
    by_place = {f"{rack.name}/{board}": one for board, one in quarantined.items()}
    runs = [run for run in _runs(rack, out) if run.rack == rack.name]
    found = summarise(runs, now_utc=utc_now(), days=days, quarantine=by_place)
    health = found[0] if found else _nothing(rack.name, days)
    seen = {board.board for board in health.boards}
    unseen = [_unseen(rack, board, quarantined) for board in rack.boards if board.id not in seen]
    return dataclasses.replace(health, boards=tuple(sorted((*health.boards, *unseen), key=_by_name)))


def _without_others(health: RackHealth, rack: Rack) -> tuple[RackHealth, tuple[BoardHealth, ...]]:
    """Part off the boards that left the rack file: renamed, or taken away. They are not down, and no one can
    keep them out."""
    known = {board.id for board in rack.boards}
    there = tuple(board for board in health.boards if board.board in known)
    gone = tuple(board for board in health.boards if board.board not in known)
    return dataclasses.replace(health, boards=there), gone


def _gone_lines(gone: Sequence[BoardHealth], rack_file: Path) -> Iterator[str]:
    for board in gone:
        seen = moment(board.last_seen_utc)
        yield f"{board.board} is not in {rack_file} any more; last seen {seen}"


def _stray_lines(rack: Rack, rack_file: Path, out: Path) -> Iterator[str]:
    """Yield what keeps nothing out: a board that was renamed measures again under its new name."""
    known = {board.id for board in rack.boards}
    for board, one in read_quarantine(folder_of(rack, out)).items():
        if board not in known:
            yield f"{board} is not in {rack_file} any more, but {reason(one, rack_file)}"


def _by_name(board: BoardHealth) -> str:
    return board.board


def _runs(rack: Rack, out: Path) -> Sequence[Summary]:
    """Return the history's runs, and those on disk that are not in it, without the ones under way."""
    past = read_past(history_of(out), racks=[rack.name])
    warn(past.left_out)
    known = list(past.runs)
    ids = {run.run_id for run in known} | _under_way(rack, out)
    for directory in RunDirectory.list(out):
        if directory.run_id not in ids:
            try:
                known.append(figures_of(read_run(directory.path)))
            except ConfigError as error:
                click.echo(f"warning: {directory.path} is left out: {error}", err=True)
    return known


def _under_way(rack: Rack, out: Path) -> set[str]:
    holders = (read_holder(lock_dir(rack, out), board.id) for board in rack.boards)
    return {holder.run_id for holder in holders if holder}


def _nothing(rack: str, days: int) -> RackHealth:
    return RackHealth(rack, days, 0, ())


def _unseen(rack: Rack, board: Board, quarantined: dict[str, Quarantine]) -> BoardHealth:
    return BoardHealth(
        rack=rack.name,
        board=board.id,
        kind=board.kind,
        target=board.target,
        runs=0,
        faulted_runs=0,
        failure_ratio=None,
        recoveries=0,
        mean_time_to_recovery_s=None,
        faults_in_a_row=0,
        last_seen_utc="",
        quarantine=quarantined.get(board.id),
    )


COLUMNS = 80


@click.group("rack")
def command() -> None:
    """Inspect a rack."""


command.add_command(health)
command.add_command(qualify)
command.add_command(status)


@command.command()
@rack_option
@out_option
@click.option("--power", is_flag=True, help="Also switch each board off and on, and check that it follows.")
def check(rack: Path, out: Path, *, power: bool) -> None:
    """Check the rack file, ports, power switches, network and broker, without flashing anything.

    A physical board is reset and identified, unless a run holds it.
    """
    loaded = load_rack(rack)
    up = boards_up(loaded, out)
    locks = lock_dir(loaded, out)
    findings = check_rack(loaded, locks, served={board.id: board.tcp_port for board in up.values()})
    findings += [drivers.finding(*found, needed=True) for found in drivers.emulators_of(loaded.boards)]
    if not loaded.is_virtual:
        findings.append(_capture_rights(loaded))
        findings += check_access_point(loaded.access_point)
        if loaded.access_point.shapes:
            with tempfile.TemporaryDirectory(prefix="hil-check-") as folder:
                interface = loaded.access_point_interface
                findings.append(check_shaping(interface, loaded.access_point.shapes, Path(folder)))
        if loaded.access_point.dhcp:
            findings.append(check_leases(loaded.host.address))
    for finding in findings:
        click.echo(_finding_line(finding))
    for board in loaded.boards if power else ():
        findings.append(_proven(loaded, up.get(board.id, board), out))
        click.echo(_finding_line(findings[-1]))
    _raise_first(loaded, findings)


def _finding_line(finding: Finding) -> str:
    """Return a finding in lines of at most 80 columns, longer words apart; what to do stands below."""
    told = [f"{finding.mark} {finding.subject}: {finding.sentence}"]
    if finding.mend and not finding.ok:
        told.append(f"     Next: {finding.mend}")
    wrap = partial(
        textwrap.fill,
        width=COLUMNS,
        subsequent_indent="     ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(wrap, told))


def _proven(rack: Rack, board: Board, out: Path) -> Finding:
    """Prove a board's power switch, under lease."""
    if not board.serial:
        sentence = "its rack is not up, so there is nothing to switch."
        return Finding(
            f"power of {board.id}", ok=False, sentence=sentence, mend="hil virtual up.", needed=False
        )
    try:
        with lease_boards(lock_dir(rack, out), [board.id], run_id=f"rack-check-{os.getpid()}"):
            return prove_power(board, virtual=lambda name: virtual_switch(rack, out, name))
    except RigError as error:
        return Finding(f"power of {board.id}", ok=False, sentence=error.sentence, mend=error.next_step)


def _capture_rights(rack: Rack) -> Finding:
    """Start a capture and end it: whether this user may is what only trying tells."""
    interfaces = [name for name in (rack.host.interface, rack.capture.access_point) if name]
    subject = f"capture on {' and '.join(interfaces)}"
    needed = bool(rack.capture.access_point)
    with tempfile.TemporaryDirectory(prefix="hil-check-") as folder:
        try:
            capture = Capture.start(LocalSpawner(), interfaces, Path(folder, "c.pcapng"), capture_filter="")
            capture.stop()
        except RigError as error:
            sentence = f"not possible, so delivery, echo and throughput are not: {error.sentence}"
            return Finding(subject, ok=False, sentence=sentence, mend=error.next_step, needed=needed)
    return Finding(subject, ok=True, sentence="this user may capture")


def _raise_first(rack: Rack, findings: list[Finding]) -> None:
    failed = [finding for finding in findings if not finding.ok and finding.needed]
    if failed:
        others = f" (and {len(failed) - 1} more, above)" if len(failed) > 1 else ""
        raise RigError(
            f"rack {rack.name} is not ready{others}: {failed[0].subject}: {failed[0].sentence}",
            next_step=failed[0].mend,
        )
