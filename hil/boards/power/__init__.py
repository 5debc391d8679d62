# SPDX-License-Identifier: Apache-2.0
"""The drivers that switch a board's supply: a type of the rack file is a file here, or a lab's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from hil.base.finding import Finding
from hil.base.yamlfile import Node

TIMEOUT_S = 20.0


class PowerDriver(ABC):
    """A switch in a board's supply. ``str(driver)`` names it in sentences: "power off of board b1 by …".

    What goes wrong is raised as RigError or ConfigError, with the sentence alone: whoever switches adds the
    board and the line of the rack file.
    """

    @classmethod
    @abstractmethod
    def read(cls, node: Node) -> Self:
        """Read the keys of its section. Raises ConfigError (``node.error``)."""

    @classmethod
    def read_hub(cls, node: Node) -> Self:
        """Read the section of what switches a whole hub."""
        return cls.read(node)

    @abstractmethod
    def switch(self, *, on: bool) -> None:
        """Switch the supply on or off."""

    @abstractmethod
    def is_on(self) -> bool | None:
        """Return the state that the switch itself tells; None where it tells none."""

    def check(self, board: str) -> Iterable[Finding]:  # noqa: ARG002 (a driver's own needs it)
        """Look whether a run could use it, without switching."""
        return ()


def read_timeout(node: Node) -> float:
    """Return after how many seconds a switch has failed."""
    return node.quantity("timeout", "s", default=TIMEOUT_S, minimum=1.0, maximum=300.0)


def check_program(board: str, program: str, path: str | None) -> Finding:
    """Return whether the program that switches a board is installed, at ``path``."""
    if path:
        return Finding(board, ok=True, sentence=f"power switch {program} is there; --power proves it")
    return Finding(
        board,
        ok=False,
        sentence=f"its power command {program!r} is not installed.",
        mend=f"install {program}, or correct its 'power' in the rack file.",
    )
