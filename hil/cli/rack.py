"""``hil rack``: is everything there, who holds what, how it fared, and take back what a dead run left."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import click

from hil.base.errors import RigError
from hil.base.finding import Finding
from hil.boards.lease import Holder, clear_stale, lock_dir, read_holder
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.check import check_rack
from hil.cli.options import out_option, rack_option
from hil.cli.rack_health import health
from hil.virtual.start import boards_up

RELEASE_DEADLINE_S = 10.0


@click.group("rack")
def command() -> None:
    """Look at a rack."""


command.add_command(health)


@command.command()
@rack_option
@out_option
def check(rack: Path, out: Path) -> None:
    """Check the rack file, ports, power switches, network and broker, without flashing anything."""
    loaded = load_rack(rack)
    served = {board.id: board.tcp_port for board in boards_up(loaded, out).values()}
    findings = check_rack(loaded, lock_dir(loaded, out), served=served)
    for finding in findings:
        click.echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.subject}: {finding.sentence}")
    _raise_first(loaded, findings)


@command.command()
@rack_option
@out_option
def status(rack: Path, out: Path) -> None:
    """Say who holds which board, and where those are that `hil virtual up` keeps up."""
    loaded = load_rack(rack)
    up = boards_up(loaded, out)
    for board in loaded.boards:
        holder = read_holder(lock_dir(loaded, out), board.id)
        state = f"held by {holder.describe()}" if holder else "free"
        state += f", up at {up[board.id].stock_serial}" if board.id in up else ""
        click.echo(f"{board.id} ({board.target}): {state}")


@command.command()
@rack_option
@out_option
@click.option("--force", is_flag=True, help="End the runs that hold boards (SIGTERM), then release.")
def release(rack: Path, out: Path, force: bool) -> None:
    """Clear what dead runs left; refuse while a run is alive, unless --force."""
    loaded = load_rack(rack)
    folder = lock_dir(loaded, out)
    for board in loaded.boards:
        holder = read_holder(folder, board.id)
        if holder:
            _end(loaded, folder, board.id, holder, force=force)
        stale = clear_stale(folder, board.id)
        click.echo(f"{board.id}: {'released' if stale or holder else 'was free'}")


def _raise_first(rack: Rack, findings: list[Finding]) -> None:
    failed = [finding for finding in findings if not finding.ok]
    if failed:
        raise RigError(
            f"rack {rack.name} is not ready: {failed[0].subject}: {failed[0].sentence}",
            next_step=failed[0].mend,
        )


def _end(rack: Rack, folder: Path, board_id: str, holder: Holder, *, force: bool) -> None:
    if not force:
        raise RigError(
            f"board {board_id} of rack {rack.name} is held by {holder.describe()}, which is alive.",
            next_step="let it finish, or end it: hil rack release --force.",
        )
    if not holder.pid:
        raise RigError(
            f"board {board_id} of rack {rack.name} is held by {holder.describe()}, so it cannot be ended.",
            next_step=f"find it and end it: fuser -v {folder / board_id}.lock",
        )
    if holder.host != socket.gethostname():
        raise RigError(f"board {board_id} is held by {holder.describe()}, on another host.")
    _terminate(board_id, holder)
    deadline = time.monotonic() + RELEASE_DEADLINE_S
    while read_holder(folder, board_id):
        if time.monotonic() > deadline:
            raise RigError(f"{holder.describe()} did not let go of board {board_id}.", next_step="kill it.")
        time.sleep(0.1)


def _terminate(board_id: str, holder: Holder) -> None:
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it has just ended; if the board stays held, another process holds it
    except PermissionError as error:
        raise RigError(
            f"board {board_id} is held by {holder.describe()}, which this user may not end.",
            next_step=f"ask {holder.who}, or end it as that user or as root: kill {holder.pid}",
        ) from error
