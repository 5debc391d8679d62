"""The ESP32-S3 (QFN56, revision v0.2, 4 MB Winbond flash beside it, no PSRAM: an ESP32-S3-WROOM-1-N4).

Sources: ESP32-S3 Technical Reference Manual (eFuse, SPI, RTC, UART registers), what esptool 5.6.0 reads of it
(``esptool/targets/esp32s3.py``), and the ROM's texts as boards print them.
"""

from __future__ import annotations

from hil.virtual.board.chip import DETECTIONS, XTENSA, Bootloader, Chip, Rom
from hil.virtual.board.common import RESETS, RTC, SPI, UART_DIVIDER, Block1, rtc_watchdog

_EFUSE = Block1(base=0x60007000, major=0, minor=2, block_minor=3)

_REGISTERS = {
    **_EFUSE.registers(),
    _EFUSE.base + 0x30: 0,  # downloads need not be encrypted
    _EFUSE.base + 0x34: 0,  # flash encryption off, flash voltage not forced
    _EFUSE.base + 0x38: 0,  # no secure boot
    _EFUSE.base + 0x3C: 0,  # flash has four data lines
    _EFUSE.base + 0x6C: 1,  # block 2, BLK_VERSION_MAJOR
    0x60004038: 0,  # GPIO_STRAP: serial loader, flash voltage 3.3 V
    RTC + 0x12C: 0,  # RTC_CNTL_OPTION1: loader not forced
}

_ROM = Rom(
    banner="ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\n",
    flash_boot="0x8 (SPI_FAST_FLASH_BOOT)",
    download_boot="0x0 (DOWNLOAD(USB/UART0))",
    resets=RESETS,
    spi_lines=("SPIWP:0xee",),
    chip_check="ets_main.c 329",
)

ESP32S3 = Chip(
    name="esp32s3",
    image_chip_id=9,
    bootloader_offset=0x0,
    revision="v0.2",
    architecture=XTENSA,
    detection=DETECTIONS["esp32s3"],
    rom=_ROM,
    bootloader=Bootloader(speed_label="Boot SPI Speed :", flash_mhz=80, efuse_revision="v1.3"),
    crystal_hz=40_000_000,
    uart_divider_register=UART_DIVIDER,
    spi=SPI,
    flash_jedec_id=0x1640EF,
    flash_bytes=4 << 20,
    registers=_REGISTERS,
    mac_registers=_EFUSE.mac_registers,
    mapped_ranges=((0x3C000000, 0x3E000000), (0x42000000, 0x44000000)),
    rtc_watchdog=rtc_watchdog(config0=0x98, protect=0xB0),
)
