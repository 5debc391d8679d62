"""Opening consoles: a board that says nothing holds up neither the others nor a stop."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import serial as pyserial

from hil.base.errors import RigError
from hil.boards.rack import Board, load_rack
from hil.fixtures.board import ConsoleFactory, opening
from hil.run.interfaces import Stopped

RACK = load_rack(Path(__file__).resolve().parent.parent / "hil" / "racks" / "virtual.yaml")
WAIT_S = 20.0


def ignore() -> None:
    """Nobody stops the run."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Board, threading.Event]]:
    """A board whose port opens and never says a word, and the event that somebody listens to it."""
    listening = threading.Event()

    def connect(board: Board, _build_dir: Path) -> list[Any]:
        port = pyserial.serial_for_url(board.serial, timeout=0.05)
        listening.set()
        while True:  # as esptool does, which goes on until the port breaks
            port.read(1)

    monkeypatch.setattr(opening, "create_dut", connect)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"socket://127.0.0.1:{server.getsockname()[1]}"
        yield replace(RACK.boards[0], serial=url), listening


def open_in_thread(
    factory: ConsoleFactory, board: Board, tmp_path: Path, stop: Callable[[], None]
) -> tuple[threading.Thread, list[BaseException]]:
    """Open a console in a thread; the list takes what it raises."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            factory.open(board, tmp_path, tmp_path / f"{board.id}.log", stop=stop, check=ignore)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, raised


def test_a_silent_board_is_given_up(
    silent: tuple[Board, threading.Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the deadline its port is closed, the fault names it, and the next board gets its turn."""
    board, _listening = silent
    original = pyserial.serial_for_url
    monkeypatch.setattr(opening, "CONNECT_DEADLINE_S", 0.3)
    factory = ConsoleFactory()
    for _turn in range(2):
        with pytest.raises(RigError, match=rf"board {board.id} on .* did not answer its reset"):
            factory.open(board, tmp_path, tmp_path / "log", stop=ignore, check=ignore)
    assert pyserial.serial_for_url is original


def test_a_stop_is_heard_while_a_silent_board_is_opened(
    silent: tuple[Board, threading.Event], tmp_path: Path
) -> None:
    """Both the board that connects and the one that waits for its turn end when the run is stopped."""
    board, listening = silent
    stopping = threading.Event()

    def stop() -> None:
        if stopping.is_set():
            raise Stopped

    factory = ConsoleFactory()
    first, first_raised = open_in_thread(factory, board, tmp_path, stop)
    assert listening.wait(WAIT_S)
    second, second_raised = open_in_thread(factory, replace(board, id="other"), tmp_path, stop)
    stopping.set()
    deadline = time.monotonic() + opening.CONNECT_DEADLINE_S / 2
    for thread in (first, second):
        thread.join(deadline - time.monotonic())
        assert not thread.is_alive()
    assert [type(error) for error in (*first_raised, *second_raised)] == [Stopped, Stopped]
