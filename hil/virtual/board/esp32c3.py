"""The ESP32-C3 (QFN32, revision v0.4, with 4 MB XMC flash inside: an ESP32-C3FH4).

Sources: ESP32-C3 Technical Reference Manual (eFuse, SPI, RTC, UART registers), what esptool 5.6.0 reads of it
(``esptool/targets/esp32c3.py``), and the ROM's texts as boards print them.
"""

from __future__ import annotations

from hil.virtual.board.chip import DETECTIONS, RISCV, Bootloader, Chip, Rom
from hil.virtual.board.common import RESETS, SPI, UART_DIVIDER, Block1, rtc_watchdog

_EFUSE = Block1(base=0x60008800, major=0, minor=4, block_minor=3, flash_capacity=1, flash_vendor=1)

_REGISTERS = {
    **_EFUSE.registers(),
    _EFUSE.base + 0x30: 0,  # downloads need not be encrypted
    _EFUSE.base + 0x34: 0,  # flash encryption off
    _EFUSE.base + 0x38: 0,  # no secure boot
    _EFUSE.base + 0x6C: 1,  # block 2, BLK_VERSION_MAJOR
}

_ROM = Rom(
    banner="ESP-ROM:esp32c3-api1-20210207\r\nBuild:Feb  7 2021\r\n",
    flash_boot="0xc (SPI_FAST_FLASH_BOOT)",
    download_boot="0x4 (DOWNLOAD(USB/UART0/1))",
    resets=RESETS,
    spi_lines=("SPIWP:0xee",),
    chip_check="ets_main.c 333",
)

ESP32C3 = Chip(
    name="esp32c3",
    image_chip_id=5,
    bootloader_offset=0x0,
    revision="v0.4",
    architecture=RISCV,
    detection=DETECTIONS["esp32c3"],
    rom=_ROM,
    bootloader=Bootloader(speed_label="SPI Speed      :", flash_mhz=80, efuse_revision="v1.3"),
    crystal_hz=40_000_000,
    uart_divider_register=UART_DIVIDER,
    spi=SPI,
    flash_jedec_id=0x164020,
    flash_bytes=4 << 20,
    registers=_REGISTERS,
    mac_registers=_EFUSE.mac_registers,
    mapped_ranges=((0x3C000000, 0x3C800000), (0x42000000, 0x42800000)),
    rtc_watchdog=rtc_watchdog(config0=0x90, protect=0xA8),
)
