"""The part of a board's console log that belongs to one case. Secrets were masked when it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hil.model import Scalar

_COMMAND = re.compile(r"\d+\.\d+ > #\S+ (?P<verb>\S+) ?(?P<rest>.*)")
_BETWEEN_BOOTS = "…\n"


def console_of(run_path: Path, board: str, bench: str, parameters: Mapping[str, Scalar]) -> str:
    """Return the lines from a case's ``run`` to the next case, of every boot.

    The whole log where it has no such line, and "" where the board has no log.
    """
    path = run_path / "console" / f"{board}.log"
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    wanted = {f"{key}={value}" for key, value in parameters.items()}
    commands = [(number, match) for number, line in enumerate(lines) if (match := _COMMAND.match(line))]
    parts = []
    for place, (number, match) in enumerate(commands):
        words = match["rest"].split()
        if match["verb"] == "run" and words[:1] == [bench] and wanted <= set(words[1:]):
            parts.append("".join(lines[number : _end(commands, place, len(lines))]))
    return _BETWEEN_BOOTS.join(parts) if parts else "".join(lines)


def _end(commands: list[tuple[int, re.Match[str]]], place: int, lines: int) -> int:
    """Return the line of the greeting before the next case, or before the next boot's."""
    later = (number for number, match in commands[place + 1 :] if match["verb"] in ("hello", "run"))
    return next(later, lines)
