# SPDX-License-Identifier: Apache-2.0
"""A program of this package on the rack's host, and the lines that it writes."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.errors import RigError
from hil.base.process import how_ended
from hil.network.peers.gateway.lines import LineReader
from hil.network.process import Process, Spawner, end_process

POLL_S = 0.01
STOP_TIMEOUT_S = 3.0
AGAIN = "start the run again."


class Program:
    """``title`` names it in sentences. Lines are in ``<name>.jsonl``, its other words in ``<name>.log``."""

    def __init__(
        self, spawner: Spawner, title: str, module: str, arguments: Sequence[str], folder: Path, name: str
    ) -> None:
        self.title = title
        self.lines = LineReader(folder / f"{name}.jsonl")
        self._log = folder / f"{name}.log"
        argv = [sys.executable, "-m", module, *arguments]
        self._process: Process = spawner.spawn(argv, log_path=self._log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_line(self, *events: str, timeout_s: float) -> Mapping[str, Any]:
        """Return the first line of one of these events. Raises RigError: it ended, or took too long."""
        deadline = time.monotonic() + timeout_s
        while True:
            code = self._process.returncode  # before reading: what it wrote last is then in the file
            found = self.lines.of(*events)
            if found:
                return found[0]
            if code is not None:
                raise self._ended(code)
            if time.monotonic() > deadline:
                raise RigError(
                    f"{self.title} did not reach its {' or '.join(events)} within {timeout_s:g} s.",
                    log=str(self._log),
                    next_step=AGAIN,
                )
            time.sleep(POLL_S)

    def check_until(self, event: str) -> None:
        """Raise RigError when it has ended before it wrote a line of this event."""
        code = self._process.returncode  # before reading, as above
        if code is not None and not self.lines.of(event):
            raise self._ended(code)

    def check(self) -> None:
        """Raise RigError when it has ended."""
        code = self._process.returncode
        if code is not None:
            raise self._ended(code)

    def check_pauses(self) -> None:
        """Raise RigError when it was not let run for a second: what it measured is not the board's."""
        pauses = self.lines.of("paused")
        if pauses:
            longest_s = max(one["paused_us"] for one in pauses) / 1e6
            raise RigError(
                f"{self.title} stood still for {longest_s:.1f} s meanwhile.",
                log=str(self._log),
                next_step="look for what stopped it (the host's memory, a debugger), then run again.",
            )

    def stop(self) -> None:
        """End it; does nothing when it has ended. Its lines are complete then. Never raises."""
        end_process(self._process, STOP_TIMEOUT_S)

    def _ended(self, code: int) -> RigError:
        words = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        said = f": {words[-1]}" if words else ""
        return RigError(
            f"{self.title} (pid {self._process.pid}) {how_ended(code)}{said}.",
            log=str(self._log),
            next_step=AGAIN,
        )
