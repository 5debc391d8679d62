# SPDX-License-Identifier: Apache-2.0
"""A port of a USB hub, or all of them, switched by uhubctl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from hil.base.errors import RigError
from hil.base.finding import Finding
from hil.base.process import find_program, output_of
from hil.base.yamlfile import Node
from hil.boards.power import TIMEOUT_S, PowerDriver, check_program, read_timeout

PROGRAM = "uhubctl"
_LOCATION = re.compile(r"\d+(-\d+(\.\d+)*)?")
_HUB = re.compile(r"(?:Current|New) status for hub (\S+) ")
_PORT = re.compile(r"\s+Port (\d+): [0-9a-f]{4}(.*)")


@dataclass(frozen=True)
class Uhubctl(PowerDriver):
    """``location`` and ``port`` as uhubctl names them; port 0 is all of the hub's."""

    location: str
    port: int = 0
    timeout_s: float = TIMEOUT_S

    @classmethod
    def read(cls, node: Node) -> Self:
        port = node.integer("port", minimum=1, maximum=14)
        return cls(_read_location(node), port, read_timeout(node))

    @classmethod
    def read_hub(cls, node: Node) -> Self:
        return cls(_read_location(node), timeout_s=read_timeout(node))

    def __str__(self) -> str:
        return " ".join(self._argv())

    def switch(self, *, on: bool) -> None:
        output_of([*self._argv(), "-a", "on" if on else "off"], self.timeout_s)

    def is_on(self) -> bool:
        """A USB 3 hub is two, which uhubctl switches both; each has to say the same."""
        states = port_states(output_of(self._argv(), self.timeout_s))
        powered = {"power" in words for _, _, words in states}
        if len(powered) != 1:
            ports = (f"port {port} of hub {hub} says {' '.join(words)}" for hub, port, words in states)
            raise RigError(
                f"{'; '.join(ports) or 'uhubctl tells no state of it'}.",
                next_step="use a hub that really switches its ports (uhubctl's README lists some).",
            )
        return powered.pop()

    def check(self, board: str) -> Iterator[Finding]:
        yield check_program(board, PROGRAM, find_program(PROGRAM))

    def _argv(self) -> list[str]:
        return [PROGRAM, "-l", self.location, *(["-p", str(self.port)] if self.port else [])]


def port_states(output: str) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return what uhubctl prints of each port: hub, port, and the words of its state."""
    states: list[tuple[str, int, tuple[str, ...]]] = []
    hub = ""
    for line in output.splitlines():
        if match := _HUB.match(line):
            hub = match[1]
        elif hub and (match := _PORT.match(line)):
            words = match[2].partition("[")[0]  # in brackets stands what is plugged in, in words of its own
            states.append((hub, int(match[1]), tuple(words.split())))
    return states


def _read_location(node: Node) -> str:
    location = node.text("location")
    if not _LOCATION.fullmatch(location):
        raise node.error(
            "location",
            f"{location!r} is not a hub location in uhubctl's form, such as 1-1.2.",
            next_step="run uhubctl to list the hubs that it can switch, with their locations.",
        )
    return location
