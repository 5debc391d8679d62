# SPDX-License-Identifier: Apache-2.0
"""Power commands that do not work are the rig's fault, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.boards.power.command import Command
from hil.boards.rack import Board, Power
from hil.boards.supply import switch_power
from tests.boards.switch_rig import no_virtual_board


def board_switched_by(command: str, *, timeout_s: float = 20.0) -> Board:
    power = Power("command", Command(command, timeout_s))
    return Board("a", "physical", "esp32", "/dev/ttyUSB0", power, where="rack.yaml:7")


def switch(board: Board) -> None:
    switch_power(board, "on", virtual=no_virtual_board)


def test_the_command_gets_the_action(tmp_path: Path) -> None:
    """{action} becomes on or off, and a quoted word stays one word."""
    (tmp_path / "switch").write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/said\n')
    switch(board_switched_by(f"sh {tmp_path}/switch -a {{action}} 'two words'"))
    assert (tmp_path / "said").read_text() == "-a|on|two words|"


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        (None, 0, "the program '.*/switch'"),
        ("#!/bin/sh\n", 0o644, "could not be started: Permission denied.*chmod \\+x"),
        ("no program at all", 0o755, "could not be started: Exec format error"),
        ("#!/bin/sh\nprintf 'no such port \\377' >&2; exit 4\n", 0o755, "ended with status 4: no such port"),
        ("#!/bin/sh\nexec sleep 60\n", 0o755, "did not end within 0.2 s"),
    ],
)
def test_a_command_that_fails_is_a_sentence(
    tmp_path: Path, text: str | None, mode: int, sentence: str
) -> None:
    """Not there, not executable, no program, a status, no end: each is the rig's, with what to do and the
    line of the rack file."""
    path = tmp_path / "switch"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    board = board_switched_by(f"{path} {{action}}", timeout_s=0.2 if "sleep" in str(text) else 20.0)
    with pytest.raises(RigError, match=f"rack.yaml:7: .*{sentence}"):
        switch(board)
