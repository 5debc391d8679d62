# SPDX-License-Identifier: Apache-2.0
"""From reset to the application: what the ROM and ESP-IDF's second-stage bootloader check and print.

The ROM always talks at 115200 baud; bootloader and application at the rate that they were built for.
Texts follow ESP-IDF v5.5 (``bootloader_utility.c``, ``esp_image_format.c``, ``flash_partitions.c``).

The otadata partition in a board's flash; what its entries mean stands in hil.boards.firmware.otadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hil.boards.firmware import app_image, partition_table
from hil.boards.firmware.app_image import AppDescription, AppImage, ChecksumError, ImageError
from hil.boards.firmware.otadata import (
    ENTRY_BYTES,
    SECTOR_BYTES,
    SECTORS,
    STATE_ABORTED,
    STATE_NEW,
    STATE_PENDING_VERIFY,
    STATE_VALID,
    OtadataEntry,
    active,
    pack,
    unpack,
)
from hil.boards.firmware.otadata import select as select_slot
from hil.boards.firmware.partition_table import APP, DATA, Partition, TableError
from hil.virtual.board.chip import VirtualChip
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.reset import BOOTLOADER_FAILED, POWER_ON, ROM_WATCHDOG, Reset


def read_otadata(flash: NorFlash, partition: Partition) -> tuple[OtadataEntry, ...]:
    """Read both entries; none where the partition is smaller than two sectors."""
    if partition.size_bytes < SECTORS * SECTOR_BYTES:
        return ()
    offsets = (partition.offset + index * SECTOR_BYTES for index in range(SECTORS))
    return tuple(unpack(flash.read(offset, ENTRY_BYTES)) for offset in offsets)


def write_otadata(flash: NorFlash, partition: Partition, index: int, sequence: int, state: int) -> None:
    """Write one of the two entries, as the bootloader does: its sector is erased before."""
    offset = partition.offset + index * SECTOR_BYTES
    flash.erase(offset, SECTOR_BYTES)
    flash.program(offset, pack(sequence, state))


def roll_back(flash: NorFlash, partition: Partition) -> None:
    """Give up what was booted before and not confirmed since (CONFIG_BOOTLOADER_APP_ROLLBACK_ENABLE)."""
    for index, entry in enumerate(read_otadata(flash, partition)):
        if entry.state == STATE_PENDING_VERIFY:
            write_otadata(flash, partition, index, entry.sequence, STATE_ABORTED)


def try_once(flash: NorFlash, partition: Partition) -> None:
    """Note of a new image that it boots now: it has until the next reset to confirm itself."""
    entries = read_otadata(flash, partition)
    ruling = active(entries)
    if ruling is not None and entries[ruling].state == STATE_NEW:
        write_otadata(flash, partition, ruling, entries[ruling].sequence, STATE_PENDING_VERIFY)


ROM_BAUD = 115200
_ROM_RETRIES = 4
_SPI_MHZ = 80
_USAGES = {
    (APP, 0x00): "factory app",
    (APP, 0x20): "test app",
    (DATA, 0x00): "OTA data",
    (DATA, 0x01): "RF data",
    (DATA, 0x02): "WiFi data",
    (DATA, 0x04): "NVS keys",
    (DATA, 0x05): "efuse",
}


@dataclass(frozen=True)
class App:
    """The application to start: its host ELF, where it lies in flash, and its description."""

    elf: bytes
    partition: Partition
    description: AppDescription


@dataclass
class BootOutcome:
    """The outcome of a boot: the console output in order, and the app or the reset that follows."""

    output: list[tuple[int, bytes]] = field(default_factory=list)
    console_baud: int = ROM_BAUD
    app: App | None = None
    next_reset: Reset = ROM_WATCHDOG

    def text(self, text: str) -> None:
        self.output.append((self.console_baud, text.encode()))


class _BootFailedError(Exception):
    """Nothing can be started; the console has said why."""


def download_banner(chip: VirtualChip, reset: Reset) -> bytes:
    """Return what the ROM prints on entering its serial loader; esptool looks for it."""
    return f"{_rom_head(chip, reset, chip.rom.download_boot)}waiting for download\r\n".encode()


def _rom_head(chip: VirtualChip, reset: Reset, boot_mode: str) -> str:
    rom = chip.rom
    saved_pc = "Saved PC:0x00000000\r\n" if rom.prints_saved_pc and reset is not POWER_ON else ""
    return f"{rom.banner}rst:{rom.resets[reset.cause]},boot:{boot_mode}\r\n{saved_pc}"


def boot_from_flash(
    chip: VirtualChip, flash: NorFlash, reset: Reset, clock_ms: Callable[[], int]
) -> BootOutcome:
    """Run ROM and second stage. ``clock_ms`` gives the milliseconds since reset for the log."""
    boot = BootOutcome()
    stage = _SecondStage(chip, flash, boot, clock_ms)
    try:
        stage.start_from_rom(reset)
        boot.app = stage.find_app()
    except _BootFailedError:
        pass
    return boot


class _SecondStage:
    def __init__(
        self, chip: VirtualChip, flash: NorFlash, boot: BootOutcome, clock_ms: Callable[[], int]
    ) -> None:
        self._chip, self._flash, self._boot, self._clock_ms = chip, flash, boot, clock_ms

    def _log(self, level: str, tag: str, text: str) -> None:
        self._boot.text(f"{level} ({self._clock_ms()}) {tag}: {text}\r\n")

    # ROM

    def start_from_rom(self, reset: Reset) -> None:
        chip, rom, text = self._chip, self._chip.rom, self._boot.text
        text(_rom_head(chip, reset, rom.flash_boot))
        bootloader = self._load_bootloader()
        is_foreign = bootloader.chip_id != chip.image_chip_id
        if is_foreign and rom.chip_check:
            text(f"Invalid chip id. Expected {chip.image_chip_id} read {bootloader.chip_id}. ")
            text(f"Bootloader for wrong chip?\r\n{rom.chip_check} \r\n")
            raise _BootFailedError
        for line in (*rom.spi_lines, f"mode:DIO, clock div:{_SPI_MHZ // chip.bootloader.flash_mhz}"):
            text(f"{line}\r\n")
        for segment in bootloader.segments:
            length = format(len(segment.data), rom.length_format)
            text(f"load:{segment.address:#010x},len:{length}\r\n")
        text(f"entry {bootloader.entry:#010x}\r\n")
        if is_foreign:  # the CPU meets no code of its own there, and a watchdog ends that
            raise _BootFailedError
        self._start_second_stage(bootloader)

    def _load_bootloader(self) -> AppImage:
        offset = self._chip.bootloader_offset
        try:
            return app_image.read_image(self._flash.read, offset, partition_table.TABLE_OFFSET - offset)
        except ChecksumError as error:
            complaint = f"csum err:{error.calculated:#x}!={error.stored:#x}"
        except ImageError:
            header = int.from_bytes(self._flash.read(offset, 4), "little")
            complaint = f"invalid header: {header:#010x}"
        self._boot.text(f"{complaint}\r\n" * _ROM_RETRIES)
        raise _BootFailedError

    def _start_second_stage(self, bootloader: AppImage) -> None:
        idf_version, baud, self._table_offset = app_image.unpack_bootloader_description(bootloader) or (
            "unknown",
            ROM_BAUD,
            partition_table.TABLE_OFFSET,
        )
        self._boot.console_baud = baud
        self._boot.next_reset = BOOTLOADER_FAILED
        self._log("I", "boot", f"ESP-IDF {idf_version} 2nd stage bootloader")
        chip, tag = self._chip, f"boot.{self._chip.name}"
        if chip.cores > 1:
            self._log("I", "boot", "Multicore bootloader")
        self._log("I", "boot", f"chip revision: {chip.revision}")
        if chip.bootloader.efuse_revision:
            self._log("I", "boot", f"efuse block revision: {chip.bootloader.efuse_revision}")
        self._log("I", tag, f"{chip.bootloader.speed_label} {chip.bootloader.flash_mhz}MHz")
        self._log("I", tag, "SPI Mode       : DIO")
        self._log("I", tag, f"SPI Flash Size : {self._flash.size_bytes >> 20}MB")
        self._log("I", "boot", "Enabling RNG early entropy source...")

    # second stage

    def find_app(self) -> App:
        table = self._load_partition_table()
        slots = tuple(sorted((p for p in table if p.is_ota_slot), key=lambda p: p.subtype))
        factory = next((p for p in table if (p.type, p.subtype) == (APP, partition_table.FACTORY)), None)
        data = partition_table.find_data(table, partition_table.DATA_OTA)
        selected, guessed = self._select(data, has_factory=factory is not None, slot_count=len(slots))
        for candidate in _in_order(factory, slots, selected):
            image = self._verify(candidate)
            if image is None:
                continue
            if guessed and data and candidate in slots:
                sequence = slots.index(candidate) + 1
                write_otadata(self._flash, data, 0, sequence, STATE_VALID)
                self._log("I", "boot", f"Set actual ota_seq={sequence} in otadata[0]")
            app = self._host_app(image, candidate)
            self._log("I", "boot", "Disabling RNG early entropy source...")
            return app
        self._log("E", "boot", "No bootable app partitions in the partition table")
        raise _BootFailedError

    def _select(
        self, data: Partition | None, *, has_factory: bool, slot_count: int
    ) -> tuple[int | None, bool]:
        """Return the slot to try first (None: factory), and whether it was guessed without otadata."""
        entries = self._after_roll_back(data) if data else ()
        if not entries:
            return None, False
        if not slot_count or all(entry.empty for entry in entries):
            self._log(
                "I",
                "boot",
                "Defaulting to factory image" if has_factory else "No factory image, trying OTA 0",
            )
            return (None, False) if has_factory else (0, all(entry.is_initial for entry in entries))
        selected = select_slot(entries, slot_count=slot_count)
        if selected is None:
            fallback = "falling back to factory" if has_factory else "and no factory, will try all partitions"
            comma = "," if has_factory else ""
            self._log("E", "boot", f"ota data partition invalid{comma} {fallback}")
        return selected, False

    def _after_roll_back(self, data: Partition) -> tuple[OtadataEntry, ...]:
        """Return the entries to choose by. ESP-IDF says nothing of either step at its usual level."""
        roll_back(self._flash, data)
        try_once(self._flash, data)
        return read_otadata(self._flash, data)

    def _load_partition_table(self) -> tuple[Partition, ...]:
        raw = self._flash.read(self._table_offset, partition_table.TABLE_MAX_BYTES)
        try:
            table = partition_table.from_binary(raw, flash_bytes=self._flash.size_bytes)
        except TableError as error:
            self._log("E", "flash_parts", str(error))
            self._log("E", "boot", "Failed to verify partition table")
            self._log("E", "boot", "load partition table error!")
            raise _BootFailedError from None
        self._log("I", "boot", "Partition Table:")
        self._log("I", "boot", "## Label            Usage          Type ST Offset   Length")
        for index, p in enumerate(table):
            usage = "OTA app" if p.is_ota_slot else _USAGES.get((p.type, p.subtype), "unknown")
            place = f"{p.type:02x} {p.subtype:02x} {p.offset:08x} {p.size_bytes:08x}"
            self._log("I", "boot", f"{index:2d} {p.name:<16s} {usage:<16s} {place}")
        self._log("I", "boot", "End of partition table")
        return table

    def _verify(self, partition: Partition) -> AppImage | None:
        """Return the partition's image, None (and say why) where it cannot be booted."""
        try:
            image = app_image.read_image(self._flash.read, partition.offset, partition.size_bytes)
        except ImageError as error:
            self._refuse(partition, "esp_image", str(error))
            return None
        if image.chip_id != self._chip.image_chip_id:
            mismatch = f"mismatch chip ID, expected {self._chip.image_chip_id}, found {image.chip_id}"
            self._refuse(partition, "boot_comm", mismatch)
            return None
        self._log_segments(image)
        self._log("I", "boot", f"Loaded app from partition at offset {partition.offset:#x}")
        return image

    def _refuse(self, partition: Partition, tag: str, why: str) -> None:
        slot = f"OTA app partition slot {partition.subtype - partition_table.OTA_FIRST}"
        self._log("E", tag, why)
        name = slot if partition.is_ota_slot else "Factory app partition"
        self._log("E", "boot", f"{name} is not bootable")

    def _log_segments(self, image: AppImage) -> None:
        for index, segment in enumerate(image.segments):
            how = "map" if self._chip.is_mapped(segment.address) else "load"
            size = len(segment.data)
            self._log(
                "I",
                "esp_image",
                f"segment {index}: paddr={segment.flash_offset:08x} vaddr={segment.address:08x} "
                f"size={size:05x}h ({size:6d}) {how}",
            )

    def _host_app(self, image: AppImage, partition: Partition) -> App:
        elf = app_image.unpack_elf(image)
        description = app_image.unpack_app_description(image)
        if elf is None or description is None:
            self._log("E", "vboard", "the image at the selected slot carries no program for this host")
            self._log("E", "vboard", f"flash the output of 'hil build --target virtual-{self._chip.name}'")
            raise _BootFailedError
        return App(elf, partition, description)


def _in_order(
    factory: Partition | None, slots: tuple[Partition, ...], start: int | None
) -> tuple[Partition, ...]:
    """Return the partitions in the bootloader's order: from the selected slot down to factory, then up."""
    first = -1 if start is None else start
    down = tuple(reversed(slots[: first + 1])) + ((factory,) if factory else ())
    return down + slots[first + 1 :]
