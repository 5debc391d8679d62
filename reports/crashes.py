# SPDX-License-Identifier: Apache-2.0
"""What crashes of a run's boards left to read: the decoded backtrace of each panic and of each core dump."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hil.base.reading import RUN_MOST_BYTES, read_at_most

MOST_SHOWN = 4  # of a board: one that crashes again and again shows the same
MOST_FRAMES = 12
_FILE = re.compile(r"(?P<board>.+)\.(?P<what>panic|coredump)-(?P<number>\d+)\.txt")
_FRAME = re.compile(r"#\d+ |0x[0-9a-f]{8} in ")
_ADDRESS = re.compile(r"0x[0-9a-f]+ in ")
_NAMES = {"panic": "panic", "coredump": "core dump"}


@dataclass(frozen=True)
class Crash:
    """One file that hil.boards.firmware made of a crash; ``frames`` are on top of it, the innermost first."""

    board: str
    name: str
    file: str
    frames: tuple[str, ...]
    text: str

    @property
    def shown(self) -> str:
        """The frames as a page shows them, "" where none was decoded."""
        more = [f"… {len(self.frames) - MOST_FRAMES} more"] * (len(self.frames) > MOST_FRAMES)
        return "\n".join([*self.frames[:MOST_FRAMES], *more])


def crashes_in(run_path: Path) -> list[Crash]:
    """Return the crashes of a run, by board and in their order."""
    found = [
        (match, path)
        for path in (run_path / "console").glob("*.txt")
        if (match := _FILE.fullmatch(path.name))
    ]
    order = sorted(found, key=lambda one: (one[0]["board"], int(one[0]["number"]), one[0]["what"] != "panic"))
    return [_read(match, path, run_path) for match, path in order]


def _read(match: re.Match[str], path: Path, run_path: Path) -> Crash:
    text = read_at_most(path, RUN_MOST_BYTES).decode("utf-8", errors="replace")
    top = text.partition("\n\n")[0].splitlines()
    return Crash(
        match["board"],
        f"{_NAMES[match['what']]} {match['number']}",
        path.relative_to(run_path).as_posix(),
        tuple(line for line in top if _FRAME.match(line)),
        text,
    )


def worth_showing(crashes: Iterable[Crash]) -> list[Crash]:
    """Return those of one board that were decoded, each backtrace once, and no more than a person reads."""
    unlike: dict[tuple[str, ...], Crash] = {}
    for crash in crashes:
        if crash.frames:
            unlike.setdefault(tuple(_ADDRESS.sub("", frame) for frame in crash.frames), crash)
    return list(unlike.values())[:MOST_SHOWN]
