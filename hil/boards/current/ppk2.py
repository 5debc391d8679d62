# SPDX-License-Identifier: Apache-2.0
"""Nordic's Power Profiler Kit II over its USB serial port: 100,000 samples a second, 200 nA to 1 A.

Its protocol is not written down; these are what Nordic's own application (pc-nrfconnect-ppk) and the
library ppk2-api do, which agree. A command is a byte and its arguments. A sample is four bytes, little
endian: bits 0-13 a quarter of the converter's value, 14-16 the range, 18-23 a counter, 24-31 eight inputs.
The library itself is not used: it cannot tell that samples were lost, reads the calibration by waiting, and
turns errors into log lines.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import serial
from serial.tools import list_ports

from hil.base.errors import RigError
from hil.base.numeric import np
from hil.base.yamlfile import Node
from hil.boards.current import MeterDriver
from hil.boards.current_track import Spans, joined, no_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

RATE_HZ = 100_000
SPAN_SAMPLES = 1000  # 10 ms
LARGEST_UA = 1_000_000.0  # what it can give and measure

AVERAGE_START, AVERAGE_STOP = b"\x06", b"\x07"
DEVICE_RUNNING_ON = b"\x0c\x01"
REGULATOR_SET = 0x0D
SET_POWER_MODE = {"ampere": b"\x11\x01", "source": b"\x11\x02"}
GET_META_DATA = b"\x19"
_VOLTAGES_MV = (800, 5000)

_RANGES = 5
_ADC_VOLTS = 1.8 / 163840
_ADC_FULL = 0x3FFF
_COUNTER_MASK = 0x3F
# Of how much of the average of before a sample is made after a change of range, which rings: Nordic's filter
_ALPHA, _ALPHA_LARGEST_RANGE = 0.18, 0.06
_RINGING_SAMPLES = 3
_HELD_SAMPLES = 2  # of the largest range, which do not enter the averages

_META_DEADLINE_S = 2.0
_FIRST_SAMPLE_S = 2.0
_QUIET_S = 1.0  # after it was stopped: what was on its way is here
_POLL_S = 0.1
_CHECK = "look at its cable and hub; close other programs that use it (nRF Connect)."

# What a device without calibration has
_DEFAULTS: Mapping[str, tuple[float, ...]] = {
    "R": (1031.64, 101.65, 10.15, 0.94, 0.043),
    "GS": (1.0,) * 5,
    "GI": (1.0,) * 5,
    "O": (0.0,) * 5,
    "S": (0.0,) * 5,
    "I": (0.0,) * 5,
    "UG": (1.0,) * 5,
}
_META = re.compile(r"(?m)^(R|GS|GI|O|S|I|UG)([0-4]):\s*(\S+)\s*$")


@dataclass(frozen=True)
class Calibration:
    """The device's factors by name (R in Ω, …), one a range: smallest currents first."""

    factors: Mapping[str, NDArray[np.float64]]

    @classmethod
    def parse(cls, text: str) -> Calibration:
        """Read what GET_META_DATA answers. Raises ValueError: a value that is no number."""
        found = {name: list(values) for name, values in _DEFAULTS.items()}
        for name, number, value in _META.findall(text):
            amount = float(value)
            if name != "R" or amount:  # some devices say 0 Ω of a range that was never calibrated
                found[name][int(number)] = amount
        return cls({name: np.array(values) for name, values in found.items()})


class Ppk2Decoder:
    """Turns the bytes of a stream into µA. ``voltage_mv`` is what the board gets, which some of it leaks."""

    def __init__(self, calibration: Calibration, voltage_mv: int) -> None:
        self._factors = calibration.factors
        self._volts = voltage_mv / 1000
        self.restart()

    def restart(self) -> None:
        """Forget an earlier stream."""
        self._rest = b""
        self._counter: int | None = None
        self._range: int | None = None
        self._since_change = _RINGING_SAMPLES
        self._averages: list[float | None] = [None, None]

    def feed(self, data: bytes) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
        """Return for each whole sample its µA, whether it is out of range, and the samples lost before it."""
        data = self._rest + data
        whole = len(data) - len(data) % 4
        self._rest = data[whole:]
        words = np.frombuffer(data[:whole], dtype="<u4")
        if not len(words):
            return np.empty(0), np.empty(0, bool), np.empty(0, np.int64)
        ranges = np.minimum((words >> 14) & 7, _RANGES - 1).astype(np.int64)
        amps = self._amps((words & _ADC_FULL).astype(np.float64) * 4, ranges)
        ua = self._without_ringing(amps, ranges) * 1e6
        full = ((words & _ADC_FULL) == _ADC_FULL) & (ranges == _RANGES - 1)
        return ua, full | (ua >= LARGEST_UA), self._lost_before(words)

    def _amps(self, adc: NDArray[np.float64], ranges: NDArray[np.int64]) -> NDArray[np.float64]:
        of = {name: values[ranges] for name, values in self._factors.items()}
        bare = (adc - of["O"]) * (_ADC_VOLTS / of["R"])
        shaped: NDArray[np.float64] = of["UG"] * (
            bare * (of["GS"] * bare + of["GI"]) + (of["S"] * self._volts + of["I"])
        )
        return shaped

    def _lost_before(self, words: NDArray[Any]) -> NDArray[np.int64]:
        """Count by the samples' own counter, which comes round: whole rounds of 64 it does not show."""
        counters = ((words >> 18) & _COUNTER_MASK).astype(np.int64)
        first = counters[0] - 1 if self._counter is None else self._counter
        self._counter = int(counters[-1])
        return (np.diff(counters, prepend=first) - 1) & _COUNTER_MASK

    def _without_ringing(self, amps: NDArray[np.float64], ranges: NDArray[np.int64]) -> NDArray[np.float64]:
        """Put averages in the place of the samples right after a change of range."""
        since = self._since_changes(ranges)
        ringing, largest = since < _RINGING_SAMPLES, ranges == _RANGES - 1
        enters = ~(ringing & largest & (since < _HELD_SAMPLES))
        usual = self._averaged(0, _ALPHA, amps, enters)
        slow = self._averaged(1, _ALPHA_LARGEST_RANGE, amps, enters)
        return np.where(ringing, np.where(largest, slow, usual), amps)

    def _since_changes(self, ranges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many samples ago the range was changed, 0 where it is a new one."""
        first = ranges[0] if self._range is None else self._range
        changed = np.diff(ranges, prepend=first) != 0
        index = np.arange(len(ranges))
        last = np.maximum.accumulate(np.where(changed, index, -1 - self._since_change))
        self._range, self._since_change = int(ranges[-1]), int(index[-1] - last[-1])
        since: NDArray[np.int64] = index - last
        return since

    def _averaged(
        self, which: int, alpha: float, amps: NDArray[np.float64], enters: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the exponential average at each sample; those that do not enter leave it as it is."""
        before = self._averages[which]
        entering = amps[enters]
        if before is None:
            before = float(entering[0]) if len(entering) else float(amps[0])
        states = accumulate(entering.tolist(), lambda old, new: old + alpha * (new - old), initial=before)
        all_states = np.fromiter(states, np.float64, len(entering) + 1)
        self._averages[which] = float(all_states[-1])
        averages: NDArray[np.float64] = all_states[np.cumsum(enters)]
        return averages


def regulator_set(voltage_mv: int) -> bytes:
    """Return the command for a voltage."""
    return struct.pack(">BH", REGULATOR_SET, voltage_mv)


def find_port(wanted: str) -> str:
    """Return the port of a PPK2 that is named by path or by USB serial number. Raises RigError."""
    if "/" in wanted:
        return wanted
    ports = [port for port in list_ports.comports() if port.serial_number]
    found = sorted(port.device for port in ports if port.serial_number == wanted)
    if found:
        return found[0]  # newer ones have two ports, the first of which is for samples
    known = ", ".join(sorted({f"{port.serial_number} ({port.product})" for port in ports})) or "none"
    raise RigError(
        f"there is no PPK2 with the USB serial number {wanted}; on USB there are: {known}.",
        next_step="plug it in, or mend 'current' in the rack file.",
    )


class _Patience:
    """Is over after so many seconds, and not before it was asked as often as reading takes them: a host that
    stood still has still to read what came."""

    def __init__(self, seconds: float) -> None:
        self._until_s = time.monotonic() + seconds
        self._left = round(seconds / _POLL_S)

    def is_over(self) -> bool:
        self._left -= 1
        return self._left < 0 and time.monotonic() > self._until_s


@dataclass(frozen=True)
class Ppk2(MeterDriver):
    """``serial`` is a port's path or a USB serial number. ``voltage_mv`` is what the meter gives to the board
    (``mode`` source), or what the supply gives that the meter is wired into (ampere)."""

    serial: str
    voltage_mv: int
    mode: str

    @classmethod
    def read(cls, node: Node) -> Self:
        low, high = _VOLTAGES_MV
        voltage_mv = node.integer("voltage_mv", minimum=low, maximum=high)
        return cls(node.text("serial"), voltage_mv, node.choice("mode", tuple(SET_POWER_MODE)))

    def __str__(self) -> str:
        return f"PPK2 {self.serial}"

    @property
    def feeds(self) -> bool:  # type: ignore[override]
        return self.mode == "source"

    def open(self) -> Ppk2Meter:
        return Ppk2Meter(self)


class Ppk2Meter:
    """hil.boards.current.Meter over a serial port; raises RigError where it does not answer."""

    resolution_ua = 0.2

    def __init__(self, driver: Ppk2) -> None:
        self._place = str(driver)
        self._voltage_mv = driver.voltage_mv
        self._port = self._open(find_port(driver.serial))
        try:
            text = self._metadata()
            self._decoder = Ppk2Decoder(Calibration.parse(text), driver.voltage_mv)
            self._set_up(driver, text)
        except (RigError, ValueError) as error:
            self.close()
            if isinstance(error, RigError):
                raise
            raise RigError(f"{self._place} returned an invalid calibration: {error}.") from error

    def _open(self, path: str) -> serial.Serial:
        try:
            return serial.Serial(
                path, 115200, timeout=_POLL_S, write_timeout=_META_DEADLINE_S, exclusive=True
            )
        except (OSError, ValueError) as error:
            raise RigError(f"opening {self._place} at {path} failed: {error}.", next_step=_CHECK) from error

    def _metadata(self) -> str:
        """Stop what an earlier user left running, and ask for the calibration."""
        self._write(AVERAGE_STOP)
        patience = _Patience(_META_DEADLINE_S)
        while self._take() and not patience.is_over():
            pass
        self._write(GET_META_DATA)
        said = b""
        patience = _Patience(_META_DEADLINE_S)
        while b"END" not in said:
            if patience.is_over():
                raise RigError(
                    f"{self._place} sent no calibration within {_META_DEADLINE_S:g} s.",
                    next_step=f"check that this is a PPK2's port; {_CHECK}",
                )
            said += self._take()
        return said.decode("ascii", "replace")

    def _set_up(self, driver: Ppk2, text: str) -> None:
        """Set mode and voltage, and feed the board; what is so already is left alone, as a board may run."""
        wanted = {"ampere": "1", "source": "2"}[driver.mode]
        is_so = {
            key: re.search(rf"(?mi)^{key}:\s*{value}\s*$", text) is not None
            for key, value in (("mode", wanted), ("vdd", str(driver.voltage_mv)))
        }
        if not is_so["mode"]:
            self._write(SET_POWER_MODE[driver.mode])
        if not is_so["vdd"]:
            self._write(regulator_set(driver.voltage_mv))
        self._write(DEVICE_RUNNING_ON)

    @property
    def origin_s(self) -> float:
        return self._origin_s

    def begin(self) -> None:
        self._decoder.restart()
        self._origin_s = float("inf")
        self._samples = 0  # of the stream, lost ones included
        self._pending = _no_samples()
        self._first = no_spans()
        self._write(AVERAGE_START)
        patience = _Patience(_FIRST_SAMPLE_S)
        while not self._samples:
            if patience.is_over():
                raise RigError(
                    f"{self._place} sent no samples within {_FIRST_SAMPLE_S:g} s of the start command.",
                    next_step=_CHECK,
                )
            self._first = self._decoded(self._take())

    def read(self) -> Spans:
        first, self._first = self._first, no_spans()
        return first if len(first) else self._decoded(self._take())

    def end(self) -> Spans:
        self._write(AVERAGE_STOP)
        due = round((time.monotonic() - self._origin_s) * RATE_HZ)
        patience = _Patience(_QUIET_S)
        parts = [self.read()]
        while self._samples < due and not patience.is_over():
            if data := self._take():
                parts.append(self._decoded(data))
                patience = _Patience(_QUIET_S)
        patience = _Patience(_QUIET_S)
        while (data := self._take()) and not patience.is_over():  # beyond what was asked for
            parts.append(self._decoded(data))
        parts.append(self._spans(flush=True))
        return joined(parts)

    def close(self) -> None:
        with suppress(OSError, serial.SerialException):
            self._port.write(AVERAGE_STOP)
        with suppress(OSError, serial.SerialException):
            self._port.close()

    def _write(self, command: bytes) -> None:
        try:
            self._port.write(command)
        except (OSError, serial.SerialException) as error:
            raise self._gone(error) from error

    def _take(self) -> bytes:
        """Return what has come, b"" after a tenth of a second in which nothing did."""
        try:
            waiting = self._port.in_waiting
            return bytes(self._port.read(max(1, waiting)))
        except (OSError, serial.SerialException, TypeError) as error:  # pyserial's own, of a closed port
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> RigError:
        return RigError(f"{self._place} was disconnected: {error}.", next_step=_CHECK)

    def _decoded(self, data: bytes) -> Spans:
        ua, saturated, lost = self._decoder.feed(data)
        if not len(ua):
            return no_spans()
        index = self._samples + np.cumsum(lost + 1) - 1
        self._samples = int(index[-1]) + 1
        # The sample's time is no later than its arrival: the block that was on its way shortest says it best.
        self._origin_s = min(self._origin_s, time.monotonic() - self._samples / RATE_HZ)
        arrived = np.stack([index, ua, saturated, lost])
        self._pending = np.concatenate([self._pending, arrived], axis=1)
        return self._spans()

    def _spans(self, *, flush: bool = False) -> Spans:
        """Make spans of SPAN_SAMPLES samples of those that came; ``flush`` makes one of the rest."""
        count = self._pending.shape[1]
        whole = count - count % SPAN_SAMPLES
        parts = [self._pending[:, :whole].reshape(4, -1, SPAN_SAMPLES)]
        spans = [_spans_of(parts[0], self._voltage_mv)]
        self._pending = self._pending[:, whole:]
        if flush and self._pending.shape[1]:
            spans.append(_spans_of(self._pending.reshape(4, 1, -1), self._voltage_mv))
            self._pending = _no_samples()
        return joined(spans)


def _no_samples() -> NDArray[np.float64]:
    return np.empty((4, 0))


def _spans_of(blocks: NDArray[np.float64], voltage_mv: int) -> Spans:
    """Make a span of each block; ``blocks`` are (index, µA, saturated, lost before) × block × sample.

    What was lost counts as drawn like the samples around it.
    """
    index, ua, saturated, lost = blocks
    if not index.size:
        return no_spans()
    return Spans(
        start_s=(index[:, 0] - lost[:, 0]) / RATE_HZ,
        end_s=(index[:, -1] + 1) / RATE_HZ,
        mean_ua=ua.mean(axis=1),
        peak_ua=ua.max(axis=1),
        mv=np.full(len(ua), float(voltage_mv)),
        saturated=saturated.sum(axis=1).astype(np.int64),
        lost_s=lost.sum(axis=1) / RATE_HZ,
    )
