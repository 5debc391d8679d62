# SPDX-License-Identifier: Apache-2.0
"""The chips that the virtual board can be, and what the newer ones have in common.

Sources: their Technical Reference Manuals (eFuse with block 1's parameters, SPI, UART and RTC registers);
``esp_rom/<chip>/include/<chip>/rom/rtc.h`` of ESP-IDF v5.5; what esptool 5.6.0 reads from each register to
name the chip (``esptool/targets/<chip>.py``); the ROM's texts as boards print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.virtual.board.chip import (
    DETECTIONS,
    RISCV,
    XTENSA,
    Bootloader,
    Rom,
    RtcWatchdog,
    SpiRegisters,
    VirtualChip,
    mac_words,
)
from hil.virtual.board.reset import Cause

# D0WD-V3, revision v3.1, 40 MHz crystal, 16 MB Winbond flash
_ESP32_EFUSE = 0x3FF5A000
_ESP32_SPI1 = 0x3FF42000

_ESP32_REGISTERS = {
    _ESP32_EFUSE + 0x00: 0,  # flash encryption off, no read protection
    _ESP32_EFUSE + 0x0C: (1 << 15) | (1 << 13) | (1 << 9),  # CHIP_VER_REV1, 240 MHz rated, package D0WD
    _ESP32_EFUSE
    + 0x10: 0x80,  # CK8M_FREQ: with RTCCALICFG1 below the ROM's estimate of the crystal is 40 MHz
    _ESP32_EFUSE + 0x14: (1 << 24) | (1 << 20),  # WAFER_VERSION_MINOR 1, CHIP_VER_REV2
    _ESP32_EFUSE + 0x18: 0,  # no secure boot
    0x3FF6607C: 1 << 31,  # APB_CTRL_DATE: third revision bit
    0x3FF5F06C: 800 << 7,  # RTCCALICFG1
    0x3FF44038: 0,  # GPIO_STRAP: flash voltage 3.3 V
    0x3FF48074: 0,  # RTC_CNTL_SDIO_CONF: voltage not forced
}


def crc8_dallas(data: bytes) -> int:
    """Return the CRC-8 (polynomial 0x31 reflected) that eFuse block 0 keeps beside the MAC address."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x8C if crc & 1 else 0)
    return crc


def _esp32_mac_registers(mac: bytes) -> Mapping[int, int]:
    low, high = mac_words(mac)
    return {_ESP32_EFUSE + 0x04: low, _ESP32_EFUSE + 0x08: high | crc8_dallas(mac) << 16}


_ESP32_ROM = Rom(
    banner="ets Jul 29 2019 12:21:46\r\n\r\n",
    flash_boot="0x13 (SPI_FAST_FLASH_BOOT)",
    download_boot="0x3 (DOWNLOAD_BOOT(UART0/UART1/SDIO_REI_REO_V2))",
    resets={
        Cause.POWER_ON: "0x1 (POWERON_RESET)",
        Cause.RESTART: "0xc (SW_CPU_RESET)",
        Cause.SYSTEM: "0x3 (SW_RESET)",
        Cause.ROM_WATCHDOG: "0x10 (RTCWDT_RTC_RESET)",
    },
    spi_lines=(
        "configsip: 0, SPIWP:0xee",
        "clk_drv:0x00,q_drv:0x00,d_drv:0x00,cs0_drv:0x00,hd_drv:0x00,wp_drv:0x00",
    ),
    length_format="d",
    prints_saved_pc=False,
)

ESP32 = VirtualChip(
    name="esp32",
    image_chip_id=0,
    revision="v3.1",
    architecture=XTENSA,
    detection=DETECTIONS["esp32"],
    rom=_ESP32_ROM,
    bootloader=Bootloader(speed_label="SPI Speed      :", flash_mhz=40),
    crystal_hz=40_000_000,
    uart_divider_register=0x3FF40014,
    spi=SpiRegisters(
        command=_ESP32_SPI1, start_bit=1 << 18, user2=_ESP32_SPI1 + 0x24, data0=_ESP32_SPI1 + 0x80
    ),
    flash_jedec_id=0x1840EF,
    flash_bytes=16 << 20,
    registers=_ESP32_REGISTERS,
    mac_registers=_esp32_mac_registers,
    mapped_ranges=((0x3F400000, 0x3F800000), (0x400D0000, 0x40400000)),
)


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
    """What block 1 of a chip holds; its package contains no flash."""

    base: int
    major: int
    minor: int
    package: int = 0
    block_minor: int = 0

    def registers(self) -> Mapping[int, int]:
        """Return the words behind the MAC address, by their addresses."""
        at = self.base + _BLOCK1
        identity = (self.minor & 7) << 18 | self.package << 21 | self.block_minor << 24
        return {
            at + 12: identity,
            at + 16: 0,
            at + 20: (self.minor >> 3) << 23 | self.major << 24,
        }

    def mac_registers(self, mac: bytes) -> Mapping[int, int]:
        """Return the words of the MAC address, by their addresses."""
        low, high = mac_words(mac)
        return {self.base + _BLOCK1: low, self.base + _BLOCK1 + 4: high}


# QFN56, revision v0.2, 16 MB Winbond flash beside it, no PSRAM: an ESP32-S3-WROOM-1-N16
_S3_EFUSE = Block1(base=0x60007000, major=0, minor=2, block_minor=3)

_S3_REGISTERS = {
    **_S3_EFUSE.registers(),
    _S3_EFUSE.base + 0x30: 0,  # downloads need not be encrypted
    _S3_EFUSE.base + 0x34: 0,  # flash encryption off, flash voltage not forced
    _S3_EFUSE.base + 0x38: 0,  # no secure boot
    _S3_EFUSE.base + 0x3C: 0,  # flash has four data lines
    _S3_EFUSE.base + 0x6C: 1,  # block 2, BLK_VERSION_MAJOR
    0x60004038: 0,  # GPIO_STRAP: serial loader, flash voltage 3.3 V
    RTC + 0x12C: 0,  # RTC_CNTL_OPTION1: loader not forced
}

_S3_ROM = Rom(
    banner="ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\n",
    flash_boot="0x8 (SPI_FAST_FLASH_BOOT)",
    download_boot="0x0 (DOWNLOAD(USB/UART0))",
    resets=RESETS,
    spi_lines=("SPIWP:0xee",),
    chip_check="ets_main.c 329",
)

ESP32S3 = VirtualChip(
    name="esp32s3",
    image_chip_id=9,
    revision="v0.2",
    architecture=XTENSA,
    detection=DETECTIONS["esp32s3"],
    rom=_S3_ROM,
    bootloader=Bootloader(speed_label="Boot SPI Speed :", flash_mhz=80, efuse_revision="v1.3"),
    crystal_hz=40_000_000,
    uart_divider_register=UART_DIVIDER,
    spi=SPI,
    flash_jedec_id=0x1840EF,
    flash_bytes=16 << 20,
    registers=_S3_REGISTERS,
    mac_registers=_S3_EFUSE.mac_registers,
    mapped_ranges=((0x3C000000, 0x3E000000), (0x42000000, 0x44000000)),
    rtc_watchdog=rtc_watchdog(config0=0x98, protect=0xB0),
)


# QFN32, revision v0.4, 16 MB XMC flash beside it: an ESP32-C3
_C3_EFUSE = Block1(base=0x60008800, major=0, minor=4, block_minor=3)

_C3_REGISTERS = {
    **_C3_EFUSE.registers(),
    _C3_EFUSE.base + 0x30: 0,  # downloads need not be encrypted
    _C3_EFUSE.base + 0x34: 0,  # flash encryption off
    _C3_EFUSE.base + 0x38: 0,  # no secure boot
    _C3_EFUSE.base + 0x6C: 1,  # block 2, BLK_VERSION_MAJOR
}

_C3_ROM = Rom(
    banner="ESP-ROM:esp32c3-api1-20210207\r\nBuild:Feb  7 2021\r\n",
    flash_boot="0xc (SPI_FAST_FLASH_BOOT)",
    download_boot="0x4 (DOWNLOAD(USB/UART0/1))",
    resets=RESETS,
    spi_lines=("SPIWP:0xee",),
    chip_check="ets_main.c 333",
)

ESP32C3 = VirtualChip(
    name="esp32c3",
    image_chip_id=5,
    revision="v0.4",
    architecture=RISCV,
    detection=DETECTIONS["esp32c3"],
    rom=_C3_ROM,
    bootloader=Bootloader(speed_label="SPI Speed      :", flash_mhz=80, efuse_revision="v1.3"),
    crystal_hz=40_000_000,
    uart_divider_register=UART_DIVIDER,
    spi=SPI,
    flash_jedec_id=0x184020,
    flash_bytes=16 << 20,
    registers=_C3_REGISTERS,
    mac_registers=_C3_EFUSE.mac_registers,
    mapped_ranges=((0x3C000000, 0x3C800000), (0x42000000, 0x42800000)),
    rtc_watchdog=rtc_watchdog(config0=0x90, protect=0xA8),
)


CHIPS = {chip.name: chip for chip in (ESP32, ESP32S3, ESP32C3)}


def by_name(name: str) -> VirtualChip:
    """Return the chip called ``name``. Raises ConfigError listing the chips that can be emulated."""
    if name not in CHIPS:
        raise ConfigError(f"A virtual board cannot be a {name!r}; choose from: {', '.join(CHIPS)}.")
    return CHIPS[name]
