# SPDX-License-Identifier: Apache-2.0
"""``hil virtual up``: a rack to poke at with esptool or any serial monitor."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.boards.rack import Board, load_rack
from hil.cli.options import DEFAULT_OUT, DEFAULT_RACK, aligned, out_option, rack_option
from hil.virtual.air.profile import load_profile
from hil.virtual.virtual_rack import VirtualRack, at_its_port, start_virtual_rack, up_dir

CHECK_S = 0.5


@click.group("virtual")
def command() -> None:
    """Run the virtual rack."""


@command.command()
@rack_option
@out_option
def up(rack: Path, out: Path) -> None:
    """Keep a virtual rack running until Ctrl-C; `hil run` measures on it meanwhile."""
    loaded = load_rack(rack)
    if not loaded.is_virtual:
        raise ConfigError(f"rack {loaded.name} is not virtual.", next_step="--rack hil/racks/virtual.yaml")
    air = load_profile(loaded.access_point.profile)
    running = start_virtual_rack(loaded, loaded.boards, air, out, up_dir(loaded, out))
    try:
        served = [at_its_port(board, running) for board in loaded.boards]
        for line in how_to_reach(served, running, options=given(rack, out)):
            click.echo(line)
        while True:
            time.sleep(CHECK_S)
            running.check()
    finally:
        running.stop()


def how_to_reach(boards: Sequence[Board], running: VirtualRack, *, options: str) -> list[str]:
    """Return where each board is, and what to type to talk to the first; ``options`` name rack and out."""
    first = boards[0]
    programs = shlex.quote(os.path.relpath(Path(sys.executable).parent))
    rows = [(board.id, board.target, running.board_address(board.id), board.stock_serial) for board in boards]
    return [
        "The virtual rack is up; Ctrl-C ends it. Its boards keep their flash.",
        "",
        *(f"  {line}" for line in aligned(rows)),
        "",
        f"In another terminal, for {first.id}:",
        f"  {programs}/hil board flash {first.id}{options}",
        f"  {programs}/hil board console {first.id}{options}",
        f"  {programs}/esptool --port {first.stock_serial} flash-id",
        f"  {programs}/python -m serial.tools.miniterm --raw --eol LF {first.stock_serial} {first.baud}",
    ]


def given(rack: Path, out: Path) -> str:
    """Return the options that another command needs to mean this rack, where they are not the defaults."""
    words = ["--rack", str(rack)] if rack.resolve() != DEFAULT_RACK.resolve() else []
    words += ["--out", str(out)] if out.resolve() != DEFAULT_OUT.resolve() else []
    return f" {shlex.join(words)}" if words else ""
