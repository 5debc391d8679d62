"""Why the chip started: what its ROM prints, and what the application is told (``esp_reset_reason``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
