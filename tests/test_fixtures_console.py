"""A board's console under pytest-embedded's DUT: it can be stopped, whatever the board does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import RigError
from hil.boards.rack import load_rack
from hil.fixtures.board import ConsoleLog, DutConsole
from hil.fixtures.board import console as console_module
from hil.run.interfaces import Stopped

BOARD = load_rack(Path(__file__).resolve().parent.parent / "hil" / "racks" / "virtual.yaml").boards[0]


class FloodingDut:
    """The parts of a DUT that a console uses; its board never stops talking."""

    def __init__(self) -> None:
        self.pexpect_proc = self
        port = SimpleNamespace(is_open=True)
        self.serial = SimpleNamespace(
            proc=port, _redirect_thread=SimpleNamespace(is_alive=lambda: True, _s=port)
        )

    def read_nonblocking(self, _size: int, _timeout: float) -> bytes:
        return b"W (9) app: again\n"


class Checks:
    """What the boot loop gives a console: a request to stop, and a look at the network."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.network_error: RigError | None = None

    def stop(self) -> None:
        if self.stopping.is_set():
            raise Stopped

    def check(self) -> None:
        if self.network_error:
            raise self.network_error


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def flooded(tmp_path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch) -> Iterator[DutConsole]:
    monkeypatch.setattr(console_module, "HEALTH_PERIOD_S", 0.0)
    log = ConsoleLog(tmp_path / "console.log")
    parts: list[Any] = [FloodingDut()]
    yield DutConsole(BOARD, parts, log, stop=checks.stop, check=checks.check)
    log.close()


def test_a_full_disk_is_the_rigs_fault() -> None:
    """A console log that cannot be written names its file and the way out, like every other file of a run."""
    log = ConsoleLog(Path("/dev/full"))
    with pytest.raises(RigError, match=r"console log /dev/full: No space left on device") as caught:
        log("a line")
    assert "free some space" in caught.value.next_step
    log.close()


def test_a_flood_does_not_hide_a_request_to_stop(flooded: DutConsole, checks: Checks) -> None:
    """A run that is stopped stops reading, although there is always more to read."""
    assert flooded.read(1.0)
    checks.stopping.set()
    with pytest.raises(Stopped):
        flooded.read(1.0)


def test_a_flood_does_not_hide_a_network_that_broke(flooded: DutConsole, checks: Checks) -> None:
    """Broker and air are looked at from time to time, whether the board talks or not."""
    assert flooded.read(1.0)
    checks.network_error = RigError("the broker died")
    with pytest.raises(RigError, match="the broker died"):
        flooded.read(1.0)
