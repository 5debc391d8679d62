# SPDX-License-Identifier: Apache-2.0
"""The build directory around a host ELF: what others need, the same bytes each time, and their sizes."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware import app_image, partition_table
from hil.boards.firmware.app_image import AppImage, ChecksumError, ImageError
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import read_digests, write_bundle, write_digests
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.partition_table import Partition, TableError
from hil.boards.firmware.revision import SourceState
from hil.boards.flash.tool import table_of, with_empty_nvs
from hil.cli.app import run_command
from tests.boards.test_bundle import TARGET
from tests.virtual.virtual_board_rig import PARTITIONS, compile_app, run_esptool


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_app(tmp_path_factory.mktemp("app"))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "partitions.csv"
    path.write_text(PARTITIONS)
    return path


def build(elf: Path, csv: Path, folder: Path, chip: str = "esp32") -> Path:
    build_image_dir(elf, folder, chip=chip, project="testapp", version="1.2.3", partitions_csv=csv)
    return folder


def read(data: bytes) -> AppImage:
    return app_image.read_image(lambda offset, length: data[offset : offset + length], 0, len(data))


def contents(folder: Path) -> Mapping[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_build_directory_is_that_of_idf(elf: Path, csv: Path, tmp_path: Path) -> None:
    """Every file that idf.py build leaves for flashing is there, and flasher_args.json names them. Two builds
    of one ELF do not differ in a byte."""
    folder = build(elf, csv, tmp_path / "build")
    assert contents(folder) == contents(build(elf, csv, tmp_path / "again"))
    arguments = json.loads((folder / "flasher_args.json").read_text())
    assert arguments["flash_files"] == {
        "0x1000": "bootloader/bootloader.bin",
        "0x8000": "partition_table/partition-table.bin",
        "0xd000": "ota_data_initial.bin",
        "0x10000": "testapp.bin",
    }
    assert arguments["app"] == {"offset": "0x10000", "file": "testapp.bin", "encrypted": "false"}
    assert (folder / "testapp.elf").read_bytes() == elf.read_bytes()
    assert (folder / "ota_data_initial.bin").read_bytes() == b"\xff" * 0x2000
    assert json.loads((folder / "config" / "sdkconfig.json").read_text())["IDF_TARGET"] == "esp32"
    assert json.loads((folder / "project_description.json").read_text())["app_bin"] == "testapp.bin"


@pytest.mark.parametrize(
    ("chip", "chip_id", "offset", "flash_freq", "architecture", "chip_revisions", "efuse_revisions"),
    [
        ("esp32", "0 (ESP32)", "0x1000", "40m", "XTENSA", (0, 399), (0, 99)),
        ("esp32s3", "9 (ESP32-S3)", "0x0", "80m", "XTENSA", (0, 99), (0, 199)),
        ("esp32c3", "5 (ESP32-C3)", "0x0", "80m", "RISCV", (3, 199), (0, 199)),
    ],
)
def test_build_directory_is_the_chips(
    elf: Path, csv: Path, tmp_path: Path, chip: str, chip_id: str, offset: str, flash_freq: str,
    architecture: str, chip_revisions: tuple[int, int], efuse_revisions: tuple[int, int],
) -> None:  # fmt: skip
    """Bootloader's offset and flash clock are those that idf.py set-target leads to, and the limits of
    revisions, times 100, those that ESP-IDF v5.5 sets by default (Kconfig.hw_support). esptool's own check
    passes, and shows the chip, the project, its version and the ELF's SHA-256."""
    folder = build(elf, csv, tmp_path / "build", chip)
    arguments = json.loads((folder / "flasher_args.json").read_text())
    assert arguments["bootloader"]["offset"] == offset
    assert arguments["flash_settings"]["flash_freq"] == flash_freq
    assert arguments["extra_esptool_args"]["chip"] == chip
    sdkconfig = json.loads((folder / "config" / "sdkconfig.json").read_text())
    assert sdkconfig["IDF_TARGET"] == chip
    assert [key for key, value in sdkconfig.items() if "ARCH" in key and value] == [
        f"IDF_TARGET_ARCH_{architecture}"
    ]
    for name in ("testapp.bin", "bootloader/bootloader.bin"):
        data = (folder / name).read_bytes()
        assert struct.unpack_from("<HH", data, 15) == chip_revisions  # esp_image_header_t
        said = image_info(folder / name)
        assert "(valid)" in said
        assert "invalid" not in said
        assert f"Chip ID: {chip_id}\n" in said
    app = folder / "testapp.bin"
    assert struct.unpack_from("<HH", app.read_bytes(), 0x20 + 176) == efuse_revisions  # esp_app_desc_t
    elf_sha256 = hashlib.sha256(elf.read_bytes()).hexdigest()
    for text in ("Project name: testapp", "App version: 1.2.3", f"ELF file SHA256: {elf_sha256}"):
        assert text in image_info(app)


def image_info(path: Path) -> str:
    status, said = run_esptool("image-info", str(path))
    assert status == 0, said
    return said


def test_image_carries_the_program(elf: Path, csv: Path, tmp_path: Path) -> None:
    """The flashed ELF runs as the built one does, and holds no debug information."""
    data = (build(elf, csv, tmp_path / "build") / "testapp.bin").read_bytes()
    image = read(data)
    assert image.sha256 == hashlib.sha256(data[:-32]).digest()
    assert data[0xB0:0xD0] == hashlib.sha256(elf.read_bytes()).digest()
    flashed = tmp_path / "flashed.elf"
    program = app_image.unpack_elf(image)
    assert program is not None
    assert len(program) < elf.stat().st_size
    flashed.write_bytes(program)
    flashed.chmod(0o755)
    done = subprocess.run([flashed], input="hello\n", capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout.splitlines()[-1] == "echo hello"


def test_debug_information_does_not_fill_the_slot(csv: Path, tmp_path: Path, elf: Path) -> None:
    """An ELF whose debug sections exceed the slot fits, because they are not flashed."""
    debug, fat = tmp_path / "debug", tmp_path / "fat.elf"
    debug.write_bytes(bytes(3 << 20))
    add = ["objcopy", "--add-section", f".debug_extra={debug}", str(elf), str(fat)]
    subprocess.run(add, check=True, timeout=30)
    folder = build(fat, csv, tmp_path / "build")
    assert (folder / "testapp.elf").stat().st_size > 3 << 20
    assert (folder / "testapp.bin").stat().st_size < 100_000


@pytest.mark.slow
def test_too_large_an_elf_is_named(csv: Path, tmp_path: Path) -> None:
    """A program that exceeds its slot is refused with both sizes and the slot's name."""
    big = compile_app(tmp_path / "big", padding_bytes=2 << 20)
    with pytest.raises(ConfigError, match=r"has 2\d{6} bytes; its slot 'ota_0' in .* has 2031616 bytes"):
        build(big, csv, tmp_path / "build")
    assert not (tmp_path / "build").exists()


def test_missing_or_foreign_elf_is_named(elf: Path, csv: Path, tmp_path: Path) -> None:
    """No file, and a file that is no ELF, are both said in a sentence with the path; a chip without a layout
    is answered with those that have one."""
    with pytest.raises(
        ConfigError, match=r"none\.elf failed: No such file.*hil build --target virtual-esp32"
    ):
        build(tmp_path / "none.elf", csv, tmp_path / "build")
    with pytest.raises(ConfigError, match="is not an ELF file: it begins with b'# Na'"):
        build(csv, csv, tmp_path / "build")
    with pytest.raises(ConfigError, match="Images can be made for esp32"):
        build(elf, csv, tmp_path / "build", "esp99")


@pytest.mark.parametrize(
    ("offset", "error", "says"),
    [
        (0, ImageError, "invalid magic byte"),
        (1, ImageError, "segment count"),
        (0x24, ChecksumError, "Checksum failed"),
        (8, ImageError, "Image hash failed"),
    ],
)
def test_damaged_image_is_found(
    elf: Path, csv: Path, tmp_path: Path, offset: int, error: type[ImageError], says: str
) -> None:
    """A changed byte is found by the check that covers it, in the bootloader's words."""
    data = bytearray((build(elf, csv, tmp_path / "build") / "testapp.bin").read_bytes())
    data[offset] ^= 0x50
    with pytest.raises(error, match=says):
        read(bytes(data))


def test_partition_table_survives(csv: Path) -> None:
    """What the CSV says is what the bootloader reads back; an empty offset follows the entry before. One
    changed bit breaks the table's MD5."""
    table = partition_table.read_csv(csv)
    binary = partition_table.to_binary(table)
    assert partition_table.from_binary(binary) == table
    assert table[4] == Partition("ota_1", 0x00, 0x11, 0x200000, 0x1F0000)
    assert partition_table.first_app(table) == table[3]
    with pytest.raises(TableError, match="Incorrect MD5 checksum"):
        partition_table.from_binary(binary[:4] + bytes([binary[4] ^ 1]) + binary[5:])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nvs, data, nvs", "has 3 fields"),
        ("nvs, dta, nvs, 0x9000, 0x1000", "type 'dta' is not known; did you mean 'data'?"),
        ("nvs, data, nvz, 0x9000, 0x1000", "subtype 'nvz' is not known; did you mean 'nvs'?"),
        ("nvs, data, nvs, 0x9000, lots", "size 'lots' is not a number"),
        ("nvs, data, nvs, 0x9100, 0x1000", "0x9100 of 'nvs' is not a multiple"),
        ("app, app, ota_0, 0x11000, 0x1000", "0x11000 of 'app' is not a multiple of 0x10000"),
        ("app, app, ota_0, 0x10000, 0x1001", "0x1001 of 'app' is not a multiple"),
        ("nvs, data, nvs, 0x3ff000, 0x2000", "outside 0x9000..0x400000"),
        ("a, data, nvs, 0x8000, 0x1000", "outside 0x9000..0x400000"),
        ("a, data, fat, 0x9000, 0x2000\nb, data, phy, 0xa000, 0x1000", "'b' overlaps 'a'"),
        ("a, data, fat, 0x9000, 0x1000\na, data, phy, 0xa000, 0x1000", "two partitions named 'a'"),
        ("a-name-of-17-bytes, data, nvs, 0x9000, 4K", "must have 1 to 16 bytes"),
        ("a, data, 0x1ff, 0x9000, 4K", "from 0 to 0xff"),
        ("a, data, nvs, 0x9000, 4K, secret", "flag 'secret' is not known"),
        ("a, app, , 0x10000, 4K", "needs a subtype"),
        ("a, data, ota, 0x9000, 4K", "of 0x2000 bytes"),
        ("a, data, nvs, 0x9000, 4K", "NVS needs 0x3000 bytes"),
        ("a, data, coredump, 0x9000, 64K, readonly", "cannot be readonly"),
        ("b, data, fat, 0xb000, 4K\na, data, fat, 0x9000, 4K", "outside 0xc000..0x400000"),
    ],
)
def test_bad_csv_is_named_with_its_line(tmp_path: Path, line: str, says: str) -> None:
    """A wrong entry is answered with file, line and what was expected."""
    csv = tmp_path / "partitions.csv"
    csv.write_text(f"# a comment\n{line}\n")
    with pytest.raises(ConfigError) as error:
        partition_table.read_csv(csv, flash_bytes=4 << 20)
    assert says in str(error.value)
    assert f"{csv}:{2 + line.count(chr(10))}:" in str(error.value)


@pytest.mark.parametrize(
    ("lines", "entries"),
    [
        ("a, DATA, Nvs, , 24k", [("a", 1, 2, 0xB000, 0x6000)]),
        ("a, data, , , 100", [("a", 1, 6, 0xB000, 100)]),
        ("a, 0x40, 0x01, 0xc000, 0x1000", [("a", 0x40, 1, 0xC000, 0x1000)]),
        ("a, app, ota_0, , -0x30000", [("a", 0, 0x10, 0x10000, 0x20000)]),
        ("a, app, factory, , 1m", [("a", 0, 0, 0x10000, 0x100000)]),
        ("a, data, fat, 0x7000000, 16M", [("a", 1, 0x81, 0x7000000, 0x1000000)]),
        ("a, data, nvs, , 4K, readonly:encrypted", [("a", 1, 2, 0xB000, 0x1000)]),
        ("a, data, 0x99,,4K\n  # indented\n b , data , undefined ,, 4K ,,", [
            ("a", 1, 0x99, 0xB000, 0x1000), ("b", 1, 6, 0xC000, 0x1000)]),
        ("boot, bootloader, primary, N/A, N/A\nt, partition_table, primary, N/A, N/A\na, data, fat,, 4K", [
            ("boot", 2, 0, 0x1000, 0x9000), ("t", 3, 0, 0xA000, 0x1000), ("a", 1, 0x81, 0xB000, 0x1000)]),
    ],
)  # fmt: skip
def test_field_a_table_is_read_as_by_gen_esp32part(tmp_path: Path, lines: str, entries: list[object]) -> None:
    """Case, units, empty subtypes, sizes up to an address, 128 MB, a table elsewhere: as ESP-IDF's."""
    csv = tmp_path / "any_name.csv"
    csv.write_text(lines + "\n")
    found = partition_table.read_csv(csv, table_offset=0xA000)
    assert [(p.name, p.type, p.subtype, p.offset, p.size_bytes) for p in found] == entries


def test_field_nvs_is_found_where_the_build_puts_the_table(tmp_path: Path, csv: Path, elf: Path) -> None:
    """A table at 0xa000 is found by flasher_args.json, and the boot loader's image says it, too."""
    csv.write_text("nvs, data, nvs, , 24K\nfactory, app, factory, , 1M\n")
    build_image_dir(
        elf, tmp_path / "b", version="1", partitions_csv=csv, table_offset=0xA000, flash_size="16MB"
    )
    assert [part.offset for part in table_of(tmp_path / "b")] == [0xB000, 0x20000]
    assert any(at == 0xB000 for at, _ in with_empty_nvs(tmp_path / "b", [], files=tmp_path / "f"))
    image = (tmp_path / "b" / "bootloader" / "bootloader.bin").read_bytes()
    read = app_image.read_image(lambda at, size: image[at : at + size], 0, len(image))
    found = app_image.unpack_bootloader_description(read)
    assert found
    assert found[2] == 0xA000


def test_a_table_that_holds_too_little_is_named(elf: Path, tmp_path: Path) -> None:
    """No file at all, a table without an entry, or without a slot for an app, is refused with the path."""
    csv = tmp_path / "partitions.csv"
    with pytest.raises(ConfigError, match=r"partitions\.csv failed: No such file"):
        partition_table.read_csv(csv)
    csv.write_text("# nothing\n")
    with pytest.raises(ConfigError, match="is empty"):
        partition_table.read_csv(csv)
    csv.write_text("nvs, data, nvs, 0x9000, 0x3000\n")
    with pytest.raises(ConfigError, match="has no app partition"):
        build(elf, csv, tmp_path / "build")


MAP = """\
Archive member included to satisfy reference by file (symbol)

Memory Configuration

Name             Origin             Length             Attributes
iram0_2_seg      0x42000020         0x007fffe0         xr
dram0_0_seg      0x3fc80000         0x0004e710         rw
*default*        0x00000000         0xffffffff

Linker script and memory map

                0x00000000                        IDF_TARGET_ESP32C3 = 0x0

.dram0.data     0x3fc80000       0x20
 .data.queue    0x3fc80000       0x20 esp-idf/freertos/libfreertos.a(queue.c.obj)

.dram0.bss      0x3fc80020       0x40
 .bss.link      0x3fc80020       0x40 managed/link/liblink.a(link.c.obj)

.flash.text     0x42000020      {total:#x}
 .text.xQueueSend
                0x42000020      0x100 esp-idf/freertos/libfreertos.a(queue.c.obj)
 .text.link_up  0x42000120      {link:#x} esp-idf/link/liblink.a(link.c.obj)

.comment        0x00000000        0x1
"""
TEXT_BYTES = 0x100


def bundle(firmware: Path, folder: Path, link_bytes: int | None) -> Path:
    """Return a bundle of an image whose link component has that many bytes of code; None: without a map."""
    shutil.copytree(firmware, folder / "build")
    # it would lead to an ELF file, which is a host's
    (folder / "build" / "project_description.json").unlink(missing_ok=True)
    if link_bytes is not None:
        text = MAP.format(total=TEXT_BYTES + link_bytes, link=link_bytes)
        (folder / "build" / "hil-firmware.map").write_text(text)
    write_bundle(folder / "build", Image(TARGET), folder / "bundle", SourceState("5" * 40, dirty=False))
    return folder / "bundle"


def rows(said: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines()]


def test_each_byte_is_a_sections_and_a_components(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest first, archives of one name together; .bss, which is not in flash, is not in the total."""
    made = bundle(virtual_firmware, tmp_path / "head", 0x50)
    for path in (made, made / TARGET):
        assert run_command(["firmware", "size", str(path)]) == 0
        assert rows(capsys.readouterr().out) == [
            [TARGET, "368"],
            ["sections"],
            ["Flash", "Code", ".text", "336"],
            ["DRAM", ".bss", "64"],
            ["DRAM", ".data", "32"],
            ["components"],
            ["libfreertos.a", "288"],
            ["liblink.a", "144"],
        ]


def test_beside_a_base_the_difference_is_exact(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what differs is printed, by how many bytes; an equal image says so."""
    head, base = (
        bundle(virtual_firmware, tmp_path / name, size) for name, size in (("h", 0x50), ("b", 0x46))
    )
    assert run_command(["firmware", "size", str(head), "--base", str(base)]) == 0
    assert rows(capsys.readouterr().out) == [
        [TARGET, "368", "358", "+10"],
        ["sections"],
        ["Flash", "Code", ".text", "336", "326", "+10"],
        ["components"],
        ["liblink.a", "144", "134", "+10"],
    ]
    assert run_command(["firmware", "size", str(head), "--base", str(head)]) == 0
    assert "components: no byte differs" in capsys.readouterr().out


def test_an_image_without_a_readable_map_is_refused(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A virtual board's has none; the sentence says what to build."""
    none = bundle(virtual_firmware, tmp_path / "none", None)
    assert run_command(["firmware", "size", str(none)]) == 2
    assert "no hil-firmware.map" in capsys.readouterr().err
    broken = bundle(virtual_firmware, tmp_path / "broken", 0x50) / TARGET / "hil-firmware.map"
    broken.write_text("nothing")
    assert run_command(["firmware", "size", str(broken.parent.parent)]) == 2
    assert "hil-firmware.map differs" in capsys.readouterr().err


def test_a_virtual_boards_image_beside_a_chips_is_passed_over(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle for both kinds of boards is one of which the chips' images are told."""
    made = bundle(virtual_firmware, tmp_path / "head", 0x50)
    write_digests(made / TARGET, replace(read_digests(made / TARGET), idf_version="v5.5.1"))
    write_bundle(virtual_firmware, Image(TARGET, 100), made, SourceState("5" * 40, dirty=False))
    assert run_command(["firmware", "size", str(made)]) == 0
    assert [row for row in rows(capsys.readouterr().out) if row[0].startswith(TARGET)] == [[TARGET, "368"]]
