# SPDX-License-Identifier: Apache-2.0
"""TI's INA226 on an I2C bus of this host, by Linux's driver ina2xx (its files under hwmon).

The kernel gives whole mA and one average an ``update_interval``, 35 ms unless it is set otherwise: right for
mean and energy, while a peak is the largest average and a sleep current below some mA is not seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.numeric import np
from hil.boards.current.track import Spans, no_spans
from hil.boards.rack.current import Current

I2C_DEVICES = Path("/sys/bus/i2c/devices")
DRIVER_NAME = "ina226"
FULL_SCALE_UV = 81_920  # over the shunt: 32,768 steps of 2.5 µV
_MISSED = 3  # so many intervals without a reading: what was between is not covered
_POLL_S = 0.1
_EARLY_S = 1e-6  # what a difference of seconds loses


class Ina226:
    """hil.boards.current.track.Meter over files; its seconds are those of ``clock``."""

    resolution_ua = 1000.0
    origin_s = 0.0

    def __init__(
        self,
        current: Current,
        *,
        devices: Path = I2C_DEVICES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._current = current
        self._folder = self._find(devices)
        self._check_shunt()
        self._interval_s = max(0.001, self._number("update_interval") / 1000)
        self._largest_ua = FULL_SCALE_UV // current.shunt_mohm * 1000
        self._before_s = 0.0

    def _find(self, devices: Path) -> Path:
        device = devices / self._current.i2c_device
        found = sorted(device.glob("hwmon/hwmon*"))
        if found and (found[0] / "name").read_text(encoding="ascii").strip() == DRIVER_NAME:
            return found[0]
        bus, address = self._current.bus, self._current.address
        raise RigError(
            f"{self._current.place}: the kernel knows no {DRIVER_NAME} at address 0x{address:02x} of I2C bus "
            f"{bus} ({device}).",
            next_step=f"modprobe ina2xx; echo ina226 0x{address:02x} | sudo tee "
            f"/sys/bus/i2c/devices/i2c-{bus}/new_device",
        )

    def _check_shunt(self) -> None:
        said_uohm, wanted_uohm = self._number("shunt_resistor"), self._current.shunt_mohm * 1000
        if said_uohm != wanted_uohm:
            raise ConfigError(
                f"{self._current.place}: the kernel knows a shunt of {said_uohm / 1000:g} mΩ, the rack "
                f"file says {self._current.shunt_mohm} mΩ.",
                next_step=f"echo {wanted_uohm} | sudo tee {self._folder}/shunt_resistor, or mend shunt_mohm.",
            )

    def _number(self, name: str) -> int:
        try:
            return int((self._folder / name).read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise RigError(
                f"{self._current.place} went away: reading {self._folder / name} failed: {error}.",
                next_step="look at its wires; dmesg says what the bus did.",
            ) from error

    def begin(self) -> None:
        self._number("curr1_input")
        self._before_s = self._clock()

    def read(self) -> Spans:
        """Return what was drawn since the reading before, one span; a long silence is covered by none."""
        due_s = self._before_s + self._interval_s
        self._sleep(min(_POLL_S, max(0.0, due_s - self._clock())))
        return self._reading() if self._clock() > due_s - _EARLY_S else no_spans()

    def end(self) -> Spans:
        return self._reading()

    def close(self) -> None:
        """Nothing is held."""

    def _reading(self) -> Spans:
        ua, mv = self._number("curr1_input") * 1000.0, float(self._number("in1_input"))
        now_s = self._clock()
        start_s = (
            self._before_s
            if now_s - self._before_s < _MISSED * self._interval_s
            else now_s - self._interval_s
        )
        self._before_s = now_s
        return Spans(
            start_s=np.array([start_s]),
            end_s=np.array([now_s]),
            mean_ua=np.array([ua]),
            peak_ua=np.array([ua]),
            mv=np.array([mv]),
            saturated=np.array([int(abs(ua) >= self._largest_ua)]),
            lost_s=np.zeros(1),
        )
