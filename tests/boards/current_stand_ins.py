# SPDX-License-Identifier: Apache-2.0
"""A meter that behaves: a PPK2 behind a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import select
import struct
import threading
import time
import tty
from collections.abc import Callable
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 100_000
ADC_VOLTS = 1.8 / 163840
# What one real device might say: no two factors alike, so that one that is mistaken for another shows.
R = (1003.35, 101.12, 10.18, 0.96, 0.051)
GS = (0.0012, 0.0023, 0.0034, 0.0045, 0.0056)
GI = (1.0021, 1.0012, 0.9987, 0.9954, 0.9911)
O = (12.0, 15.0, 9.0, 8.0, 5.0)  # noqa: E741 - its name in the protocol
S = (1.1e-8, 2.1e-8, 3.1e-7, 4.1e-6, 5.1e-5)
I = (-1.2e-8, 1.7e-8, -4.0e-7, 3.0e-6, -2.0e-5)  # noqa: E741
UG = (1.001, 0.999, 1.002, 0.998, 1.003)
# The largest current of each range: a little less than what its 14 bits hold
LARGEST_A = (50e-6, 500e-6, 5e-3, 60e-3)


def metadata(mode: int, vdd_mv: int) -> bytes:
    """Return what GET_META_DATA answers."""
    lines = ["Calibrated: 0"]
    for name, values in {"R": R, "GS": GS, "GI": GI, "O": O, "S": S, "I": I, "UG": UG}.items():
        lines += [f"{name}{number}: {value:.12f}" for number, value in enumerate(values)]
    return (
        "\n".join([*lines, f"VDD: {vdd_mv}", "HW: 9173", f"mode: {mode}", "IA: 56", "END"]) + "\n"
    ).encode()


def encode(amps: NDArray[np.float64], counter: int, vdd_mv: int) -> bytes:
    """Return samples as the device sends them: the converter's value that its calibration makes these of."""
    ranges = np.searchsorted(LARGEST_A, amps)
    r, gs, gi, o, s, i, ug = (np.array(values)[ranges] for values in (R, GS, GI, O, S, I, UG))
    wanted = amps / ug - (s * vdd_mv / 1000 + i)  # = gs · x² + gi · x
    bare = 2 * wanted / (gi + np.sqrt(gi**2 + 4 * gs * wanted))
    adc = np.clip(np.round((bare * r / ADC_VOLTS + o) / 4), 0, 0x3FFF).astype(np.uint32)
    counters = (counter + np.arange(len(amps))) & 0x3F
    words = (
        adc | (ranges.astype(np.uint32) << 14) | (counters.astype(np.uint32) << 18) | np.uint32(0xFF << 24)
    )
    return words.astype("<u4").tobytes()


class Ppk2StandIn:
    """Speaks the protocol on ``path``; ``draws`` says what flows, in A, at the seconds since it began.

    It sends at the rate of the real one, whatever it has to catch up with. ``lose`` leaves out the samples
    of so many numbers, ``gone_after`` pulls the plug at one, ``silent`` never sends one, ``mute`` does not
    even tell its calibration.
    """

    def __init__(
        self,
        draws: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        *,
        lose: range = range(0),
        gone_after: int | None = None,
        silent: bool = False,
        mute: bool = False,
    ) -> None:
        self._mute = mute
        self._draws, self._lose, self._gone_after, self._silent = draws, lose, gone_after, silent
        self._fd, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave: int | None = slave
        self.mode, self.vdd_mv, self.feeds = 1, 5000, False
        self.commands: list[bytes] = []
        self.began_s: float | None = None
        self._sent = 0
        self._buffer = b""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Ppk2StandIn:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._unplug()

    def _unplug(self) -> None:
        if self._slave is not None:
            os.close(self._slave)
            os.close(self._fd)
            self._slave = None

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if select.select([self._fd], [], [], 0.005)[0]:
                self._buffer += os.read(self._fd, 4096)
                self._obey()
            self._send()
            if self._gone_after is not None and self._sent >= self._gone_after:
                self._unplug()
                return

    def _obey(self) -> None:
        lengths = {0x0C: 2, 0x0D: 3, 0x11: 2}
        while self._buffer:
            length = lengths.get(self._buffer[0], 1)
            if len(self._buffer) < length:
                return
            command, self._buffer = self._buffer[:length], self._buffer[length:]
            self.commands.append(command)
            if command == b"\x19" and not self._mute:
                self._write(metadata(self.mode, self.vdd_mv))
            elif command == b"\x06":
                self.began_s, self._sent = time.monotonic(), 0
            elif command == b"\x07":
                self._send()  # what was due before
                self.began_s = None
            elif command[0] == 0x0C:
                self.feeds = command[1] == 1
            elif command[0] == 0x0D:
                (self.vdd_mv,) = struct.unpack(">H", command[1:])
            elif command[0] == 0x11:
                self.mode = command[1]

    def _send(self) -> None:
        if self.began_s is None or self._silent:
            return
        due = int((time.monotonic() - self.began_s) * RATE_HZ)
        due = due if self._gone_after is None else min(due, self._gone_after)
        while self._sent < due:
            numbers = np.arange(self._sent, min(due, self._sent + 5000))
            words = encode(self._draws(numbers / RATE_HZ), self._sent, self.vdd_mv)
            there = (numbers < self._lose.start) | (numbers >= self._lose.stop)
            self._sent = int(numbers[-1]) + 1
            self._write(np.frombuffer(words, "<u4")[there].tobytes())

    def _write(self, data: bytes) -> None:
        """Write all of it; a reader that has gone takes nothing, and must not hold the thread."""
        while data and not self._stopping.is_set():
            if select.select([], [self._fd], [], 0.05)[1]:
                data = data[os.write(self._fd, data[:2048]) :]
