"""The ESP32 (D0WD-V3, revision v3.1, 40 MHz crystal, 4 MB Winbond flash).

Sources: ESP32 Technical Reference Manual (eFuse, SPI, UART registers) and what esptool 5.6.0 reads
from each register to name the chip (``esptool/targets/esp32.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from hil.virtual.board.chip import DETECTIONS, XTENSA, Bootloader, Chip, Rom, SpiRegisters, mac_words
from hil.virtual.board.reset import Cause

_EFUSE = 0x3FF5A000
_SPI1 = 0x3FF42000

_REGISTERS = {
    _EFUSE + 0x00: 0,  # flash encryption off, no read protection
    _EFUSE + 0x0C: (1 << 15) | (1 << 13) | (1 << 9),  # CHIP_VER_REV1, 240 MHz rated, package D0WD
    _EFUSE + 0x10: 0x80,  # CK8M_FREQ: with RTCCALICFG1 below the ROM's estimate of the crystal is 40 MHz
    _EFUSE + 0x14: (1 << 24) | (1 << 20),  # WAFER_VERSION_MINOR 1, CHIP_VER_REV2
    _EFUSE + 0x18: 0,  # no secure boot
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


def _mac_registers(mac: bytes) -> Mapping[int, int]:
    low, high = mac_words(mac)
    return {_EFUSE + 0x04: low, _EFUSE + 0x08: high | crc8_dallas(mac) << 16}


_ROM = Rom(
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

ESP32 = Chip(
    name="esp32",
    image_chip_id=0,
    bootloader_offset=0x1000,
    revision="v3.1",
    architecture=XTENSA,
    detection=DETECTIONS["esp32"],
    rom=_ROM,
    bootloader=Bootloader(speed_label="SPI Speed      :", flash_mhz=40),
    crystal_hz=40_000_000,
    uart_divider_register=0x3FF40014,
    spi=SpiRegisters(command=_SPI1, start_bit=1 << 18, user2=_SPI1 + 0x24, data0=_SPI1 + 0x80),
    flash_jedec_id=0x1640EF,
    flash_bytes=4 << 20,
    registers=_REGISTERS,
    mac_registers=_mac_registers,
    mapped_ranges=((0x3F400000, 0x3F800000), (0x400D0000, 0x40400000)),
)
