# SPDX-License-Identifier: Apache-2.0
"""Any program: the rack file's command, called with on and off."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from hil.base.finding import Finding
from hil.base.process import find_program, output_of
from hil.base.yamlfile import Node
from hil.boards.power import TIMEOUT_S, PowerDriver, check_program, read_timeout


@dataclass(frozen=True)
class Command(PowerDriver):
    """``command`` holds ``{action}``, which becomes on or off."""

    command: str
    timeout_s: float = TIMEOUT_S

    @classmethod
    def read(cls, node: Node) -> Self:
        return cls(_read_command(node), read_timeout(node))

    def __str__(self) -> str:
        return f"'{self.command}'"

    def switch(self, *, on: bool) -> None:
        output_of(shlex.split(self.command.replace("{action}", "on" if on else "off")), self.timeout_s)

    def is_on(self) -> None:
        return None

    def check(self, board: str) -> Iterator[Finding]:
        program = shlex.split(self.command)[0]
        yield check_program(board, program, find_program(program))


def _read_command(node: Node) -> str:
    command = node.text("command")
    if "{action}" not in command:
        raise node.error(
            "command",
            f"the power command {command!r} lacks {{action}}, which hil replaces by on or off.",
            next_step="write it like: kasa --host plug-1 {action}",
        )
    try:
        shlex.split(command)
    except ValueError as error:
        raise node.error(
            "command",
            f"the power command {command!r} cannot be split into words: {error}.",
            next_step="close the quotation, or leave the quotes out.",
        ) from None
    return command
