# SPDX-License-Identifier: Apache-2.0
"""The RTC watchdog that a serial client arms to reset the chip: on a board within this process."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hil.virtual.board import machine, slip
from hil.virtual.board.chip import VirtualChip
from hil.virtual.board.chips import ESP32C3, ESP32S3
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.machine import VirtualBoard, call_later

DELAY_S = 0.05


class Client:
    """Writes registers of a board in its serial loader."""

    def __init__(self, board: VirtualBoard, chip: VirtualChip) -> None:
        assert chip.rtc_watchdog is not None
        self._board, self._watchdog = board, chip.rtc_watchdog

    def _write(self, address: int, value: int) -> None:
        data = struct.pack("<4I", address, value, 0xFFFFFFFF, 0)
        self._board.cable.receive(slip.encode(struct.pack("<BBHI", 0, 0x09, len(data), 0) + data))

    def set_watchdog(self, *, on: bool) -> None:
        """Unlock, write both words, lock again: as esptool does."""
        for address, value in (
            (self._watchdog.protect, self._watchdog.key),
            (self._watchdog.config1, 2000),
            (self._watchdog.config0, self._watchdog.enable_bit if on else 0),
            (self._watchdog.protect, 0),
        ):
            self._write(address, value)


async def after(delay_s: float) -> None:
    """Return behind every timer of the loop that is due earlier."""
    passed = asyncio.Event()
    call_later(delay_s, passed.set)
    await passed.wait()


@pytest.fixture(params=(ESP32C3, ESP32S3), ids=lambda chip: chip.name)
def chip(request: pytest.FixtureRequest) -> VirtualChip:
    found: VirtualChip = request.param
    return found


@pytest.fixture
def on_board(
    chip: VirtualChip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Client], Awaitable[None]]], list[str]]:
    """Run steps on a board in download mode; return the reasons of its resets."""
    monkeypatch.setattr(machine, "RTC_WATCHDOG_DELAY_S", DELAY_S)

    async def on_loop(steps: Callable[[Client], Awaitable[None]]) -> list[str]:
        resets: list[str] = []
        flash = NorFlash(tmp_path / "flash.bin", chip.flash_bytes)

        def log(line: str) -> None:
            if line == "download mode":
                resets.append(board.reset_reason.reason)

        board = VirtualBoard(BoardConfig("b1", chip, bytes(6)), flash, log)
        board.circuit.set_lines(dtr=True, rts=False)
        board.power_on()
        await steps(Client(board, chip))
        board.close()
        return resets

    return lambda steps: asyncio.run(on_loop(steps))


@pytest.mark.parametrize(
    ("switched", "resets"),
    [
        ((True, True), ["POWERON", "WDT"]),  # it bites once, and the straps still say download
        ((True, False), ["POWERON"]),  # esptool does that to every chip it connects to
        ((True, False, True), ["POWERON", "WDT"]),
    ],
    ids=["armed", "disarmed", "armed again"],
)
def test_an_armed_watchdog_resets_the_board_once(
    on_board: Callable[[Callable[[Client], Awaitable[None]]], list[str]],
    switched: tuple[bool, ...],
    resets: list[str],
) -> None:
    """Whatever is written before its time, what was said last decides."""

    async def steps(client: Client) -> None:
        for on in switched:
            client.set_watchdog(on=on)
        await after(3 * DELAY_S)

    assert on_board(steps) == resets
