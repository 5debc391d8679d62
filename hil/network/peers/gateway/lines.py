# SPDX-License-Identifier: Apache-2.0
"""A program's findings as JSON lines in a file: written by the program, read by the companion."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from hil.network.process import watch_pauses


class LineWriter:
    """Appends one JSON object a line, whole and at once, from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8")

    def write(self, event: str, **facts: Any) -> None:
        text = json.dumps({"event": event, **facts}) + "\n"
        with self._lock:
            self._file.write(text)
            self._file.flush()

    def tell_pauses(self) -> None:
        """Write an event ``paused`` whenever this program is not let run for a second or more."""
        watch_pauses(lambda began_ns, ended_ns: self.write("paused", paused_us=(ended_ns - began_ns) // 1000))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LineReader:
    """Reads lines as they come in; what a program was killed in the middle of is not a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        self._offset = 0

    def update(self) -> list[dict[str, Any]]:
        """Return all lines so far."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            self.lines += [json.loads(line) for line in whole.splitlines()]
        return self.lines

    def of(self, *events: str) -> list[dict[str, Any]]:
        """Return the lines so far that tell of these events."""
        return [line for line in self.update() if line["event"] in events]
