"""What the ESP32-S3 and the ESP32-C3 have in common: peripherals' addresses, reset names, eFuse block 1.

Sources: their Technical Reference Manuals ("eFuse Controller": block 1's parameters; SPI, UART and RTC
registers); ``esp_rom/<chip>/include/<chip>/rom/rtc.h`` of ESP-IDF v5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hil.virtual.board.chip import RtcWatchdog, SpiRegisters, mac_words
from hil.virtual.board.reset import Cause

_SPI1 = 0x60002000
SPI = SpiRegisters(command=_SPI1, start_bit=1 << 18, user2=_SPI1 + 0x20, data0=_SPI1 + 0x58)
UART_DIVIDER = 0x60000014
RTC = 0x60008000

# As memory protection is on, ESP-IDF restarts the whole system where an ESP32 restarts its CPUs.
RESETS = {
    Cause.POWER_ON: "0x1 (POWERON)",
    Cause.RESTART: "0x3 (RTC_SW_SYS_RST)",
    Cause.SYSTEM: "0x3 (RTC_SW_SYS_RST)",
    Cause.ROM_WATCHDOG: "0x7 (TG0WDT_SYS_RST)",
    Cause.RTC_WATCHDOG: "0x10 (RTCWDT_RTC_RST)",
}

_BLOCK1 = 0x44


def rtc_watchdog(*, config0: int, protect: int) -> RtcWatchdog:
    """Return the RTC watchdog's registers, given where they lie in the RTC controller."""
    at = RTC + config0
    return RtcWatchdog(at, at + 4, enable_bit=1 << 31, protect=RTC + protect, key=0x50D83AA1)


@dataclass(frozen=True)
class Block1:
    """What block 1 of a chip holds; flash is what its package contains (0: none), by capacity and vendor."""

    base: int
    major: int
    minor: int
    package: int = 0
    block_minor: int = 0
    flash_capacity: int = 0
    flash_vendor: int = 0

    def registers(self) -> Mapping[int, int]:
        """Return the words behind the MAC address, by their addresses."""
        at = self.base + _BLOCK1
        identity = (self.minor & 7) << 18 | self.package << 21 | self.block_minor << 24
        return {
            at + 12: identity | self.flash_capacity << 27,
            at + 16: self.flash_vendor,
            at + 20: (self.minor >> 3) << 23 | self.major << 24,
        }

    def mac_registers(self, mac: bytes) -> Mapping[int, int]:
        """Return the words of the MAC address, by their addresses."""
        low, high = mac_words(mac)
        return {self.base + _BLOCK1: low, self.base + _BLOCK1 + 4: high}
