# SPDX-License-Identifier: Apache-2.0
"""Power commands that do not work are the rig's fault, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.boards.power.command import Command
from hil.boards.rack import Board, Power
from hil.boards.supply import VirtualSwitch, switch_power


def board_switched_by(command: str, *, timeout_s: float = 20.0) -> Board:
    power = Power("command", Command(command, timeout_s))
    return Board("a", "physical", "esp32", "/dev/ttyUSB0", power, where="rack.yaml:7")


def no_virtual_board(board_id: str) -> VirtualSwitch:
    raise AssertionError(f"{board_id} is not virtual")


def switch(board: Board) -> None:
    switch_power(board, "on", virtual=no_virtual_board)


def script(folder: Path, text: str, *, mode: int = 0o755) -> Path:
    path = folder / "switch"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_command_gets_the_action(tmp_path: Path) -> None:
    """{action} becomes on or off, and a quoted word stays one word."""
    path = script(tmp_path, f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/said\n')
    switch(board_switched_by(f"{path} -a {{action}} 'two words'"))
    assert (tmp_path / "said").read_text() == "-a|on|two words|"


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        ("#!/bin/sh\n", 0o644, "could not be started: Permission denied.*chmod \\+x"),
        ("no program at all", 0o755, "could not be started: Exec format error"),
        ("#!/bin/sh\nprintf 'no such port \\377' >&2; exit 4\n", 0o755, "ended with status 4: no such port"),
        ("#!/bin/sh\nexec sleep 60\n", 0o755, "did not end within 0.2 s"),
    ],
)
def test_a_command_that_fails_is_a_sentence(tmp_path: Path, text: str, mode: int, sentence: str) -> None:
    """Not executable, no program, a status, no end: each is the rig's, with what to do."""
    path = script(tmp_path, text, mode=mode)
    board = board_switched_by(f"{path} {{action}}", timeout_s=0.2 if "sleep" in text else 20.0)
    with pytest.raises(RigError, match=f"rack.yaml:7: power on of board a by .*{sentence}"):
        switch(board)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """It is named, and so is the line of the rack file that names it."""
    with pytest.raises(RigError, match=r"rack.yaml:7: .*the program '.*/nothing'"):
        switch(board_switched_by(f"{tmp_path}/nothing {{action}}"))
