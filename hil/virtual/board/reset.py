# SPDX-License-Identifier: Apache-2.0
"""The reset circuit of a development board: DTR and RTS drive EN and IO0 through two transistors.

    DTR RTS   EN  IO0
     0   0    1    1
     1   1    1    1
     1   0    1    0     IO0 low: the ROM's serial loader, if EN rises now
     0   1    0    1     in reset

A "1" is an asserted line. Source: ESP32-DevKitC schematic. The chip samples IO0 when EN rises; here the
sampling is delayed while both lines are asserted, because a client changes DTR and RTS one after the
other, 50 ms apart with pyserial, where the capacitor on EN holds a real board in reset.

Why the chip started: what its ROM prints, and what the application is told (``esp_reset_reason``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

STRAP_DELAY_S = 0.4


class Timer(Protocol):
    def cancel(self) -> None: ...


@dataclass(frozen=True)
class ResetActions:
    """What the circuit does to the chip: hold it in reset, let it go with IO0 high or low."""

    hold: Callable[[], None]
    release: Callable[[bool], None]
    call_later: Callable[[float, Callable[[], None]], Timer]


class ResetCircuit:
    """Follows DTR and RTS and calls ``actions``."""

    def __init__(self, actions: ResetActions) -> None:
        self._actions = actions
        self._sampling: Timer | None = None
        self.dtr = self.rts = False
        self.in_reset = False

    @property
    def io0_low(self) -> bool:
        return self.dtr and not self.rts

    def set_lines(self, *, dtr: bool, rts: bool) -> None:
        if (dtr, rts) == (self.dtr, self.rts):
            return
        self.dtr, self.rts = dtr, rts
        self._cancel_sampling()
        if rts and not dtr:
            self.in_reset = True
            self._actions.hold()
        elif self.in_reset and dtr and rts:
            self._sampling = self._actions.call_later(STRAP_DELAY_S, self._release)
        elif self.in_reset:
            self._release()

    def _release(self) -> None:
        self._sampling = None
        self.in_reset = False
        self._actions.release(self.io0_low)

    def _cancel_sampling(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
            self._sampling = None


class Cause(Enum):
    """What reset the chip, as its ROM sees it; each chip has its own words for it (``rom/rtc.h``)."""

    POWER_ON = "power on"
    RESTART = "esp_restart() or a panic"
    SYSTEM = "software reset of the whole system"
    ROM_WATCHDOG = "the ROM found nothing to start"
    RTC_WATCHDOG = "RTC watchdog"


@dataclass(frozen=True)
class Reset:
    """``reason`` is what the application is told, ``cause`` what the ROM prints."""

    reason: str
    cause: Cause


POWER_ON = Reset("POWERON", Cause.POWER_ON)  # chips report a pulse on EN so, too
SOFTWARE = Reset("SW", Cause.RESTART)
PANIC = Reset("PANIC", Cause.RESTART)
TASK_WATCHDOG = Reset("TASK_WDT", Cause.RESTART)
INTERRUPT_WATCHDOG = Reset("INT_WDT", Cause.RESTART)
BROWNOUT = Reset("BROWNOUT", Cause.SYSTEM)  # the brownout interrupt restarts the whole system
BOOTLOADER_FAILED = Reset("SW", Cause.SYSTEM)
ROM_WATCHDOG = Reset("WDT", Cause.ROM_WATCHDOG)
RTC_WATCHDOG = Reset("WDT", Cause.RTC_WATCHDOG)
