# SPDX-License-Identifier: Apache-2.0
"""The virtual board boots what its flash holds, says what a chip says, and lives and dies as one does."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hil.boards.firmware import otadata
from tests.virtual.virtual_board_rig import (
    MAC,
    OTA_0,
    OTA_1,
    OTADATA,
    BoardProcess,
    console,
    flash_files,
    is_alive,
    wait_until,
    write_flash_file,
)


@pytest.fixture
def flashed(build: Path, tmp_path: Path) -> Path:
    return write_flash_file(tmp_path / "flash.bin", flash_files(build))


@pytest.fixture
def own(flashed: Path, tmp_path: Path) -> Iterator[BoardProcess]:
    """A board that a test may end."""
    with BoardProcess(tmp_path, flash=flashed) as process:
        yield process


def test_boot_log_is_that_of_esp_idf(board: BoardProcess) -> None:
    """At the console's baud rate the bootloader's and the application's lines are ESP-IDF's."""
    with console(board) as monitor:
        log = monitor.reset("READY tag=one reset=POWERON app=0x10000\n").decode("latin-1")
    for pattern in (
        r"I \(\d+\) boot: ESP-IDF \S+ 2nd stage bootloader\r\n",
        r"boot: ## Label            Usage          Type ST Offset   Length\r\n",
        r"boot:  0 nvs              WiFi data        01 02 00009000 00004000\r\n",
        r"boot:  3 ota_0            OTA app          00 10 00010000 001f0000\r\n",
        r"esp_image: segment 0: paddr=00010020 vaddr=3f400020 size=[0-9a-f]{5}h \( *\d+\) map\r\n",
        r"boot: Loaded app from partition at offset 0x10000\r\n",
        r"boot: Disabling RNG early entropy source\.\.\.\r\nREADY",
    ):
        assert re.search(pattern, log), f"{pattern} not in {log}"


def test_rom_talks_at_115200_baud(board: BoardProcess) -> None:
    """The ROM's text reads at 115200 and is noise at the console's rate, where the rest reads."""
    with console(board, baud=115200) as monitor:
        rom = monitor.reset("entry 0x40078000\r\n")
        assert b"rst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)" in rom
        assert b"READY" not in monitor.silence(0.2)
    with console(board) as monitor:
        log = monitor.reset("READY")
        assert b"rst:0x1" not in log
        assert len(log[: log.index(b"I (")]) > 100


def test_field_a_typed_line_ends_as_in_esp_idf(board: BoardProcess) -> None:
    """CR ends a line, as LF does: CR LF ends two."""
    with console(board) as monitor:
        monitor.write("one\rtwo\r")
        assert monitor.expect("echo \n").endswith(b"echo one\necho two\necho \n")


def test_opening_the_port_does_not_reset(board: BoardProcess) -> None:
    """A monitor that opens the port (both lines asserted) and closes it leaves the application running."""
    before = board.wait_for(lambda state: state["app_pid"])
    with console(board) as monitor:
        monitor.echo("hello")
    after = board.wait_for(lambda state: not state["dtr"])
    assert (after["app_pid"], after["boots"]) == (before["app_pid"], before["boots"])


@pytest.mark.filterwarnings(r"ignore:set(Daemon|Name)\(\):DeprecationWarning")  # pyserial 3.5
def test_plain_serial_monitor_talks_to_the_app(board: BoardProcess) -> None:
    """pyserial's own rfc2217:// client reads and writes the console."""
    with console(board, scheme="rfc2217") as monitor:
        monitor.write("over the stock client \xff")
        monitor.expect("echo over the stock client \xff\n")


def test_app_is_told_who_it_is(board: BoardProcess) -> None:
    """The application's environment names its MAC address, chip, and the time of reset."""
    with console(board) as monitor:
        for name, value in (("VBOARD_MAC", MAC), ("VBOARD_CHIP", "esp32")):
            monitor.write(f"env {name}")
            monitor.expect(f"{name}={value}\n")
        monitor.write("env VBOARD_BOOT_US")
        monitor.expect("VBOARD_BOOT_US=")
        assert int(monitor.expect("\n")) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "network", "password", "strict"),
    [
        (("--ap=hil", "--ap-password=of the air", "--strict=fail"), "hil", "of the air", "fail"),
        (("--strict=warn",), "-", "-", "warn"),
        ((), "-", "-", "-"),
    ],
)
def test_app_is_told_of_its_air_and_how_strict_it_is(
    flashed: Path, tmp_path: Path, arguments: tuple[str, ...], network: str, password: str, strict: str
) -> None:
    """Its only network, the password, and whether what fails on a chip fails, where they are given."""
    with BoardProcess(tmp_path, *arguments, flash=flashed) as told, console(told) as monitor:
        for name, value in (("AP", network), ("AP_PASSWORD", password), ("STRICT", strict)):
            monitor.write(f"env VBOARD_{name}")
            monitor.expect(f"VBOARD_{name}={value}\n")


@pytest.mark.parametrize(
    ("chip", "command", "says"),
    [
        ("esp32", "panic", "panic'ed (LoadProhibited). Exception was unhandled."),
        ("esp32", "illegal", "panic'ed (IllegalInstruction)."),
        ("esp32", "divide", "panic'ed (IntegerDivideByZero)."),
        ("esp32c3", "panic", "panic'ed (Load access fault)."),
        ("esp32c3", "divide", "panic'ed (Breakpoint)."),
        ("esp32", "abort", "abort() was called at PC 0x00000000 on core 0"),
        ("esp32", "exit", "vboard: the application exited with status 3"),
    ],
)
def test_crash_prints_as_esp_idf_and_reboots(board: BoardProcess, chip: str, command: str, says: str) -> None:
    """A signal or a failing exit prints ESP-IDF's panic text, by the chip's name for it; then it boots again
    and says why."""
    with console(board) as monitor:
        monitor.write(command)
        for text in (says, "ELF file SHA256: ", "\r\n\r\nRebooting...\r\n", "READY tag=one reset=PANIC "):
            monitor.expect(text)


def test_restart_reboots_silently(board: BoardProcess) -> None:
    """Exit status 0 is esp_restart(): the board boots again, and nothing is said of a crash."""
    with console(board) as monitor:
        monitor.write("restart")
        log = monitor.expect("READY tag=one reset=SW ")
    assert b"abort()" not in log
    assert b"Guru" not in log


def test_all_output_before_a_crash_arrives(board: BoardProcess) -> None:
    """What the application printed before it died is on the console before the panic text."""
    with console(board) as monitor:
        monitor.write("flood 2000")
        monitor.write("abort")
        log = monitor.expect("abort() was called")
    assert b"%063d\n" % 1999 in log
    assert b"FLOOD END\n" in log


@pytest.mark.slow
def test_a_killed_board_takes_its_app_along_and_keeps_its_flash(own: BoardProcess) -> None:
    """kill -9 ends the application too; what it wrote to flash is there when the board starts again."""
    with console(own) as monitor:
        monitor.write("store")
        monitor.expect("STORED\n")
    app_pid = own.control.state()["app_pid"]
    own.process.kill()
    own.process.communicate()
    wait_until(lambda: not is_alive(app_pid), "the end of the application")
    assert own.flash.read_bytes()[0x9000:0x9004] == b"kept"
    with BoardProcess(own.folder, flash=own.flash) as again, console(again) as monitor:
        monitor.echo("hello")


@pytest.mark.slow
def test_end_of_the_lifeline_stops_the_board(flashed: Path, tmp_path: Path) -> None:
    """The board exits by itself, application included, when the other end of its lifeline closes."""
    ours, theirs = os.pipe()
    board = BoardProcess(tmp_path, "--lifeline-fd", str(ours), flash=flashed)
    board.start(pass_fds=(ours,))
    os.close(ours)
    app_pid = board.wait_for(lambda state: state["app_pid"])["app_pid"]
    os.close(theirs)
    board.process.communicate(timeout=10)
    assert board.process.returncode == 0
    assert not is_alive(app_pid)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_the_board_cleanly(own: BoardProcess, number: signal.Signals) -> None:
    """SIGTERM and SIGINT end the board with status 0, its application dead and its control socket gone."""
    app_pid = own.wait_for(lambda state: state["app_pid"])["app_pid"]
    own.process.send_signal(number)
    own.process.communicate(timeout=10)
    assert own.process.returncode == 0
    assert not is_alive(app_pid)
    assert not (own.folder / "control").exists()


def test_newest_client_wins(board: BoardProcess) -> None:
    """A second client gets the console; the first one is cut off and nothing is reset."""
    boots = board.wait_for(lambda state: state["app_pid"])["boots"]
    with console(board) as old, console(board) as new:
        new.echo("second")
        with pytest.raises(OSError, match="lost"):
            old.silence(5)
    assert board.control.state()["boots"] == boots


def test_power_off_is_silence(board: BoardProcess) -> None:
    """Without power the app is dead, nothing answers, and EN does nothing; with it the board boots."""
    app_pid = board.wait_for(lambda state: state["app_pid"])["app_pid"]
    with console(board) as monitor:
        state = board.control.power("off")
        assert (state["mode"], state["app_pid"]) == ("off", None)
        assert not is_alive(app_pid)
        monitor.reset()
        monitor.write("hello")
        assert monitor.silence(0.3) == b""
        assert board.control.power("on")["mode"] == "run"
        monitor.expect("READY tag=one reset=POWERON ")
        board.control.power("cycle")
        monitor.expect("READY tag=one reset=POWERON ")


def test_first_boot_writes_otadata(board: BoardProcess) -> None:
    """With an empty otadata and no factory app the bootloader starts ota_0 and writes that down."""
    board.wait_for(lambda state: state["app_partition"] == "ota_0")
    assert board.flash.read_bytes()[OTADATA : OTADATA + 32] == otadata.pack(1, otadata.STATE_VALID)
    with console(board) as monitor:
        log = monitor.reset("READY")
    assert b"No factory image" not in log


@pytest.mark.parametrize(
    ("first", "second", "tag"),
    [
        (otadata.pack(1), otadata.pack(2), "two"),
        (otadata.pack(3), otadata.pack(2), "one"),
        (otadata.pack(1), otadata.pack(2, otadata.STATE_ABORTED), "one"),
        (otadata.pack(2)[:-1] + b"\0", otadata.pack(1), "one"),
        (b"\xff" * 32, otadata.pack(4), "two"),
    ],
    ids=("second", "first", "aborted", "wrong-crc", "modulo"),
)
def test_otadata_selects_the_slot(
    board: BoardProcess, build_of: Callable[..., Path], first: bytes, second: bytes, tag: str
) -> None:
    """The valid entry with the highest sequence number selects the slot, modulo the number of slots."""
    board.renew({**two_slots(build_of), OTADATA: first, OTADATA + 0x1000: second})
    with console(board) as monitor:
        monitor.reset(f"READY tag={tag} ")


def test_an_update_that_is_not_confirmed_falls_back(
    board: BoardProcess, build_of: Callable[..., Path]
) -> None:
    """A new image has one boot: the next one starts the image before, and nothing brings the new one back."""
    entries = {OTADATA: otadata.pack(1), OTADATA + 0x1000: otadata.pack(2, otadata.STATE_NEW)}
    board.renew({**two_slots(build_of), **entries})
    with console(board) as monitor:
        board.wait_for(lambda state: state["app_partition"] == "ota_1")
        assert entry(board, 1) == otadata.pack(2, otadata.STATE_PENDING_VERIFY)
        for _ in range(2):
            monitor.reset("READY tag=one ")
            assert entry(board, 1) == otadata.pack(2, otadata.STATE_ABORTED)
    assert entry(board, 0) == otadata.pack(1)


def two_slots(build_of: Callable[..., Path]) -> dict[int, Path | bytes]:
    """Return a flash's parts with the build "one" in the first slot and "two" in the second."""
    return {**flash_files(build_of("esp32")), OTA_1: build_of("esp32", "two") / "testapp.bin"}


def test_the_only_update_falls_back_to_the_first_slot(board: BoardProcess, build: Path) -> None:
    """Where no entry is left the first slot boots, and otadata is left as it is: it was no first boot."""
    board.renew({**flash_files(build), OTADATA: otadata.pack(2, otadata.STATE_PENDING_VERIFY)})
    board.wait_for(lambda state: state["app_partition"] == "ota_0")
    assert entry(board, 0) == otadata.pack(2, otadata.STATE_ABORTED)


def entry(board: BoardProcess, index: int) -> bytes:
    offset = OTADATA + index * otadata.SECTOR_BYTES
    return board.flash.read_bytes()[offset : offset + otadata.ENTRY_BYTES]


def test_broken_slot_falls_back_to_the_other(board: BoardProcess, build: Path) -> None:
    """Where the selected slot is empty the bootloader says so and starts the other one."""
    board.renew({**flash_files(build), OTADATA: otadata.pack(2)})
    with console(board) as monitor:
        log = monitor.reset("READY tag=one ")
    assert re.search(rb"image at 0x200000 has invalid magic .*\r\n.* slot 1 is not bootable\r\n", log)


@pytest.mark.parametrize(
    ("missing", "baud", "says"),
    [
        (0x1000, 115200, "invalid header: 0xffffffff\r\n"),
        (0x8000, 921600, "boot: No bootable app partitions in the partition table\r\n"),
        (OTA_0, 921600, "boot: No bootable app partitions in the partition table\r\n"),
    ],
    ids=("bootloader", "partition-table", "app"),
)
def test_missing_part_makes_a_reboot_loop(
    board: BoardProcess, build: Path, missing: int, baud: int, says: str
) -> None:
    """Without bootloader, partition table or app the board says which, and tries again and again."""
    board.renew({offset: part for offset, part in flash_files(build).items() if offset != missing})
    with console(board, baud=baud) as monitor:
        monitor.expect(says)
        monitor.expect(says)
        assert board.control.state()["app_pid"] is None


def test_foreign_image_is_refused(board: BoardProcess, build: Path) -> None:
    """An image without a program for this host, a real chip's, is named as such, with what to do."""
    files = flash_files(build)
    board.renew({**files, OTA_0: files[0x1000]})
    with console(board) as monitor:
        monitor.expect("no program for this host")
        monitor.expect("'hil build --target virtual-esp32'")


@pytest.mark.slow
def test_paced_board_loses_nothing(flashed: Path, tmp_path: Path) -> None:
    """At the pace of its baud rate the board delivers all of a long output, in order."""
    with BoardProcess(tmp_path, "--pace", flash=flashed) as paced, console(paced) as monitor:
        monitor.reset("READY")
        monitor.write("flood 500")
        log = monitor.expect("FLOOD END\n")
    assert log.endswith(b"".join(b"%063d\n" % i for i in range(500)) + b"FLOOD END\n")


@pytest.mark.slow
@pytest.mark.needs_root
def test_app_runs_in_the_given_network_namespace(flashed: Path, tmp_path: Path) -> None:
    """With --netns the application is started in that network namespace, still bound to the board's life."""
    namespace = "/proc/self/ns/net"
    with BoardProcess(tmp_path, "--netns", namespace, flash=flashed) as board, console(board) as monitor:
        monitor.echo("hello")
        app_pid = board.control.state()["app_pid"]
        assert Path(f"/proc/{app_pid}/ns/net").readlink() == Path(namespace).readlink()
        board.process.kill()
        wait_until(lambda: not is_alive(app_pid), "the end of the application")
        board.process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--mac", "nonsense"), "'nonsense' is not a MAC address"),
        (("--chip", "esp99"), "cannot be a 'esp99'; choose from: esp32"),
        (("--flash", "/proc/nowhere/flash.bin"), "Opening the flash file /proc/nowhere/flash.bin failed"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    """A board that cannot start says why in one sentence and exits with the fault's code."""
    board = BoardProcess(tmp_path, *arguments)
    with pytest.raises(AssertionError, match="did not start") as error:
        board.start()
    assert says in str(error.value)
    assert board.process.returncode in (2, 3)
