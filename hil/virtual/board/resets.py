"""Why the chip started: what the ROM prints, and what the application is told (``esp_reset_reason``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reset:
    """``rom_code`` and ``rom_name`` as the ESP32's ROM prints them (``rom/rtc.h``)."""

    reason: str
    rom_code: int
    rom_name: str


POWER_ON = Reset("POWERON", 0x1, "POWERON_RESET")  # the ESP32 reports a pulse on EN so, too
SOFTWARE = Reset("SW", 0xC, "SW_CPU_RESET")
PANIC = Reset("PANIC", 0xC, "SW_CPU_RESET")
TASK_WATCHDOG = Reset("TASK_WDT", 0xC, "SW_CPU_RESET")
INTERRUPT_WATCHDOG = Reset("INT_WDT", 0xC, "SW_CPU_RESET")
BROWNOUT = Reset("BROWNOUT", 0x3, "SW_RESET")  # the brownout interrupt restarts the whole system
BOOTLOADER_FAILED = Reset("SW", 0x3, "SW_RESET")
ROM_WATCHDOG = Reset("EXT", 0x10, "RTCWDT_RTC_RESET")  # the ROM found nothing to start
