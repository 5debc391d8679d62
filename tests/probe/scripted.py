# SPDX-License-Identifier: Apache-2.0
"""A console that plays a script, as a board would: each line at its time, and what was typed."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.probe.console import ProductConsole
from hil.probe.probe_file import Probe, read_probe
from hil.session.console import Lines

READY = "[ 0.1] up"


def skip_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the clock jump by what a script sleeps."""
    skipped, monotonic, monotonic_ns = [0.0], time.monotonic, time.monotonic_ns

    def now() -> float:
        return monotonic() + sum(skipped)

    monkeypatch.setattr(time, "sleep", skipped.append)
    monkeypatch.setattr(time, "monotonic", now)
    monkeypatch.setattr(time, "monotonic_ns", lambda: monotonic_ns() + round(sum(skipped) * 1e9))
    monkeypatch.setitem(Lines.__init__.__kwdefaults__, "clock", now)


class Script:
    """hil.session.console.Console. A line comes ``gap_s`` after the one before; the end is silence.

    Bytes come as they are, without the end of a line.
    """

    def __init__(self, lines: Sequence[str | bytes], gap_s: float = 0.002) -> None:
        self._lines = list(lines)
        self._gap_s = gap_s
        self.typed = b""

    def read(self, timeout_s: float) -> bytes:
        if not self._lines:
            time.sleep(timeout_s)
            return b""
        time.sleep(min(self._gap_s, timeout_s))
        if timeout_s < self._gap_s:
            return b""
        line = self._lines.pop(0)
        return line if isinstance(line, bytes) else line.encode() + b"\r\n"

    def write(self, data: bytes) -> None:
        self.typed += data


def probe_of(folder: Path, text: str, stem: str = "it") -> Probe:
    """Write a probe file and read it; a ready line is added where the text has none."""
    path = folder / f"{stem}.probe.yaml"
    ready = "" if re.search(r"^ready:", text, re.MULTILINE) else "ready: {pattern: '\\bup$', within_s: 1}\n"
    path.write_text(f"schema: 1\n{ready}{text}", encoding="utf-8")
    return read_probe(path)


def console_of(
    lines: Sequence[str | bytes], probe: Probe | None = None, *, ready: bool = True
) -> ProductConsole:
    """Return a console whose product said READY before its ``lines``, and is past that."""
    console = ProductConsole(Script([READY, *lines] if ready else lines), "b1", probe, log_path="b1.log")
    if ready and probe:
        console.await_ready(probe)
    return console
