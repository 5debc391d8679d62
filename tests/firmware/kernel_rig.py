# SPDX-License-Identifier: Apache-2.0
"""What the tests of the kernel's benches share: the firmware on the host, a session with it, its memory."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hil.model import Case, Scalar, Series
from hil.session import AgentSession
from tests.host_builds import PLAIN, build_programs, build_sanitized
from tests.session.agent_process import AgentProcess

ONE_CORE = "hil-firmware-esp32c3.elf"
STATE_TIMEOUT_S = 20.0
RUN_TIMEOUT_S = 60.0

OK, NOT_DONE, VOID = range(3)
LATE_RUNS_MAX = 20


@dataclass
class Board:
    """A running firmware; ``log`` holds each line of its console as it comes."""

    process: AgentProcess
    session: AgentSession
    log: list[str] = field(default_factory=list)

    def parameters(self, bench: str, **parameters: Scalar) -> dict[str, Scalar]:
        """Return all of a bench's parameters, the board's defaults where none is given."""
        listed = self.session.command("list", bench).fields["parameters"].split(",")
        defaults = {key: value for key, value, _ in (entry.split(":") for entry in listed if entry)}
        return {**defaults, **parameters}

    def run(self, bench: str, **parameters: Scalar) -> Series:
        case = Case(bench=bench, parameters=self.parameters(bench, **parameters))
        return self.session.run_case(case, timeout_s=RUN_TIMEOUT_S)

    def start(self, bench: str, **parameters: Scalar) -> None:
        """Start a run and leave it alone."""
        given = self.parameters(bench, **parameters)
        self.session.command("run", bench, *(f"{key}={value}" for key, value in given.items()))

    def wait_until_idle(self) -> None:
        deadline = time.monotonic() + STATE_TIMEOUT_S
        while self.session.info()["state"] != "idle":
            assert time.monotonic() < deadline, "the agent never became idle"

    @contextmanager
    def on_a_late_host(self) -> Iterator[None]:
        """Keep the whole board from running, for 3 ms at a time, as a busy host does."""
        ended = threading.Event()
        thread = threading.Thread(target=_stop_now_and_then, args=(self.process.process.pid, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def run_until_void(self, bench: str, **parameters: Scalar) -> Series:
        """Return a run in which a late host spoilt a row; which run that is, is up to the host."""
        with self.on_a_late_host():
            for _ in range(LATE_RUNS_MAX):
                series = self.run(bench, **parameters)
                if VOID in series.columns["outcome"]:
                    break
        return series

    def check_that_nothing_is_left_behind(
        self, bench: str, whole: Sequence[Mapping[str, Scalar]], cut_short: Sequence[Mapping[str, Scalar]]
    ) -> None:
        """Assert that after runs cut short and whole ones as much memory is free as after the first ones."""
        for parameters in [*whole, *whole]:
            self.run(bench, **parameters)
        free_bytes = self.settled_free_bytes()
        for parameters in cut_short:
            self.start(bench, **parameters)
            self.session.abort()
            self.wait_until_idle()
        for parameters in [*whole, *whole]:
            self.run(bench, **parameters)
        self.wait_for_free_bytes(free_bytes)
        assert b"ESP_ERR_NO_MEM" not in self.process.received

    def free_bytes(self) -> int:
        return int(str(self.session.info()["host_heap_free_bytes"]))

    def settled_free_bytes(self) -> int:
        """Return the free heap in bytes, once the tasks of the last run have ended."""
        deadline = time.monotonic() + STATE_TIMEOUT_S
        before, now = -1, self.free_bytes()
        while now != before:
            assert time.monotonic() < deadline
            before, now = now, self.free_bytes()
        return now

    def wait_for_free_bytes(self, expected: int) -> None:
        """Wait until the tasks of the last run have ended, and what they had is free."""
        deadline = time.monotonic() + STATE_TIMEOUT_S
        while (found := self.free_bytes()) != expected:
            assert time.monotonic() < deadline, f"{expected - found} bytes are not free any more"


def _stop_now_and_then(pid: int, ended: threading.Event) -> None:
    while not ended.wait(0.007):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.003)
        os.kill(pid, signal.SIGCONT)


@contextmanager
def board(elf: Path, **variables: str) -> Iterator[Board]:
    """Run a firmware with these VBOARD_ variables; it must end without a sanitizer's finding."""
    log: list[str] = []
    process = AgentProcess(elf, **variables)
    session = AgentSession(process, "board-1", log.append)
    errors = ""
    try:
        session.wait_ready(timeout_s=STATE_TIMEOUT_S)
        yield Board(process, session, log)
    finally:
        errors = process.stop()
    assert process.process.returncode == 0, errors
    assert "Sanitizer" not in errors
    assert "runtime error" not in errors


def firmware() -> Path:
    """Build the firmware with sanitizers; return the program."""
    return build_sanitized("hil-firmware.elf") / "hil-firmware.elf"


def build_for_one_core() -> Path:
    """Build the firmware for a chip of one core, without sanitizers; return the program."""
    return build_programs(PLAIN, ONE_CORE) / ONE_CORE


def measured(series: Series, rows: Mapping[str, int] | None = None) -> list[dict[str, int]]:
    """Return the rows after the warm-up that are ok, and hold these values where some are given."""
    found = []
    for row in range(series.warmup_rows, series.rows):
        cells = {name: column[row] for name, column in series.columns.items()}
        wanted = {"outcome": OK, **(rows or {})}
        if all(cells[name] == value for name, value in wanted.items()):
            found.append(cells)
    return found
