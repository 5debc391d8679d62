# SPDX-License-Identifier: Apache-2.0
"""Every fault of a virtual board does what its name says, at run time, and can be taken back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, RigError
from hil.virtual.board import client, faults
from hil.virtual.board.client import BoardControl
from tests.virtual.virtual_board_rig import OTA_0, BoardProcess, console, flash_files


def boots_again(board: BoardProcess) -> bool:
    """Whether the board, faults cleared, boots on reset."""
    board.control.clear()
    with console(board) as monitor:
        monitor.reset()
        return b"READY" in monitor.expect("READY")


@pytest.mark.parametrize(
    ("fault", "arguments", "says"),
    [
        ("no_sync", ("--connect-attempts", "1", "chip-id"), "getting no sync reply"),
        ("bad_md5", ("write-flash", f"{OTA_0:#x}", "APP"), "MD5 of file does not match"),
        ("write_error", ("write-flash", f"{OTA_0:#x}", "APP"), "Failed to write compressed data"),
    ],
)
def test_esptool_says_what_is_wrong(
    board: BoardProcess, build: Path, fault: str, arguments: tuple[str, ...], says: str
) -> None:
    """The loader does not answer, alters or refuses what is written; cleared, it can be flashed and boots."""
    app = str(build / "testapp.bin")
    board.control.fault(fault)
    done = board.esptool(*(app if word == "APP" else word for word in arguments))
    assert done.returncode != 0
    assert says in done.stdout
    board.control.clear()
    board.write_flash({OTA_0: Path(app)})
    assert boots_again(board)


@pytest.mark.slow
def test_no_stub(board: BoardProcess) -> None:
    """Without OHAI from the stub esptool 5.6 waits for ever; without the stub it works."""
    board.control.fault("no_stub")
    with pytest.raises(subprocess.TimeoutExpired) as error:
        board.esptool_process("chip-id", timeout_s=3)
    assert (error.value.stdout or b"").rstrip().endswith(b"Running stub flasher...")
    board.esptool_ok("--no-stub", "chip-id")
    assert boots_again(board)


def test_other_mac(board: BoardProcess) -> None:
    """The loader tells another address than the board has; cleared, its own again."""
    own = board.control.state()["mac"]
    board.control.fault("other_mac")
    said = board.esptool_ok("read-mac")
    assert (own[:-2] in said, own in said) == (True, False)
    board.control.clear()
    assert own in board.esptool_ok("read-mac")


def test_disconnect_while_flashing(board: BoardProcess, build: Path) -> None:
    """The connection drops before the third block; esptool comes back and flashes the board."""
    board.control.fault("disconnect", 3)
    output = board.write_flash({OTA_0: build / "testapp.bin"})
    assert "Lost connection, retrying..." in output
    assert board.control.state()["faults"] == {}
    board.wait_for(lambda state: state["app_partition"] == "ota_0")


def test_disconnect_whenever_flashing(board: BoardProcess, build: Path) -> None:
    """A connection that drops at every attempt makes esptool fail; cleared, the board can be flashed."""
    board.control.fault("disconnect", "always")
    done = board.esptool("write-flash", f"{OTA_0:#x}", str(build / "testapp.bin"))
    assert done.returncode != 0
    board.control.clear()
    board.write_flash(flash_files(build))


@pytest.mark.parametrize("when", ["now", "boot", "for-good"])
def test_disconnect_at_run_time(board: BoardProcess, when: str) -> None:
    """The console's client is cut off, at once or when the app starts, and can come back; for good, as of a
    cable that was pulled, once it is put back."""
    with console(board) as monitor:
        monitor.echo("hello")
        board.control.fault("disconnect", when)
        with pytest.raises(OSError, match=r"lost|failed|Broken pipe|reset"):  # noqa: PT012 (either call notices)
            monitor.reset()
            monitor.silence(5)
    if when == "for-good":
        with pytest.raises(OSError, match=r"RFC 2217|Broken pipe|reset|lost"), console(board):
            pass
        board.control.clear()
    with console(board) as monitor:
        monitor.echo("again")


@pytest.mark.parametrize(
    ("fault", "value", "says", "reset"),
    [
        ("panic", "LoadProhibited", "Core  0 panic'ed (LoadProhibited). Exception was unhandled.", "PANIC"),
        ("panic", "IllegalInstruction", "Core  0 panic'ed (IllegalInstruction). Exception was", "PANIC"),
        ("abort", True, "abort() was called at PC 0x00000000 on core 0\r\n", "PANIC"),
        ("abort", "stack-overflow", "***ERROR*** A stack overflow in task main has been detected.", "PANIC"),
        ("abort", "out-of-memory", "Memory allocation failed\r\n", "PANIC"),
        ("watchdog", "task", "task_wdt: Task watchdog got triggered. ", "TASK_WDT"),
        ("watchdog", "interrupt", "Core  0 panic'ed (Interrupt wdt timeout on CPU0).", "INT_WDT"),
    ],
)
def test_the_app_dies_and_the_board_reboots(
    board: BoardProcess, fault: str, value: object, says: str, reset: str
) -> None:
    """Of an exception, an abort of its own or for it, or a watchdog; the next boot knows what it was."""
    with console(board) as monitor:
        board.control.fault(fault, value)
        monitor.expect(says)
        monitor.expect("Rebooting...\r\n")
        monitor.expect(f"READY tag=one reset={reset}")


def test_brownout_loop(board: BoardProcess) -> None:
    """Three brownouts in a row, then the supply is good again."""
    with console(board) as monitor:
        monitor.reset("READY tag=one reset=POWERON")
        board.control.fault("brownout", 3)
        for _ in range(3):
            monitor.expect("Brownout detector was triggered\r\n")
            monitor.expect("READY tag=one reset=BROWNOUT")
        assert board.control.state()["faults"] == {}
        monitor.echo("steady")


def test_garbage(board: BoardProcess) -> None:
    """Noise comes at once and at the head of each boot, and the application is none the worse."""
    with console(board) as monitor:
        monitor.echo("before")
        board.control.fault("garbage", 300)
        monitor.write("after")
        assert len(monitor.expect("echo after\n")) == 300 + len("echo after\n")
        monitor.reset("READY")


def test_no_reset(board: BoardProcess) -> None:
    """EN is dead: the app goes on as if nothing had been asked, until the line is mended."""
    with console(board) as monitor:
        monitor.echo("here")  # it has booted
        board.control.fault("no_reset")
        monitor.reset()
        assert monitor.echo("still here") == b"echo still here\n"
    assert boots_again(board)


def test_stuck_in_download_mode(board: BoardProcess) -> None:
    """IO0 is held low: a reset ends in the loader, which takes an image, and no app runs after it."""
    with console(board, baud=115200) as monitor:
        board.control.fault("download")
        monitor.reset("waiting for download")
    assert board.control.state()["mode"] == "download"
    assert boots_again(board)


def test_bit_flips(board: BoardProcess) -> None:
    """About the share of bytes that was asked for is wrong, each by one bit; what the loader says is not."""
    sent = b"echo " + b"x" * 200 + b"\n"
    with console(board) as monitor:
        monitor.echo("before")
        board.control.fault("bit_flips", 20_000)
        monitor.write("x" * 200)
        heard = bytearray()
        while len(heard) < len(sent):
            heard += monitor.silence(0.05)
    wrong = [one ^ other for one, other in zip(heard, sent, strict=True) if one != other]
    assert 1 <= len(wrong) <= 20
    assert all(bits.bit_count() == 1 for bits in wrong)
    board.esptool_ok("chip-id")


def test_torn_lines(board: BoardProcess) -> None:
    """A torn line loses its second half and its end, so that it runs into the next one."""
    with console(board) as monitor:
        monitor.echo("before")
        board.control.fault("torn_lines", 1)
        monitor.write("hello")
        assert monitor.silence(0.3) == b"echo "


def test_say(board: BoardProcess) -> None:
    """The app logs a line of ours, whatever is in it but the end of a line."""
    with console(board) as monitor:
        board.control.fault("say", "::error::x\x1b[2J")
        monitor.expect("::error::x\x1b[2J\r\n")
    with pytest.raises(ConfigError, match="does not take the value"):
        board.control.fault("say", "two\nlines")


def test_flood(board: BoardProcess) -> None:
    """The app logs as much as was asked for, and answers after it."""
    with console(board) as monitor:
        board.control.fault("flood", 100_000)
        monitor.write("after")
        assert len(monitor.expect("echo after\n")) >= 100_000


def test_silent(board: BoardProcess) -> None:
    """A frozen app neither answers nor dies, across a reset too; cleared, it goes on where it was."""
    with console(board) as monitor:
        monitor.echo("before")
        board.control.fault("silent")
        monitor.write("frozen")
        assert monitor.silence(0.2) == b""
        board.control.clear()
        monitor.expect("echo frozen\n")
        board.control.fault("silent")
        monitor.reset()
        log = monitor.silence(0.3)
        assert b"boot: Disabling RNG early entropy source" in log
        assert b"READY" not in log


@pytest.mark.parametrize(
    ("what", "baud", "says"),
    [
        ("app", 921600, "esp_image: Checksum failed. Calculated 0x"),
        ("bootloader", 115200, "csum err:0x"),
        ("partition-table", 921600, "flash_parts: Incorrect MD5 checksum"),
        ("otadata", 921600, "boot: ota data partition invalid and no factory, will try all partitions"),
    ],
)
def test_corrupt_image(board: BoardProcess, what: str, baud: int, says: str) -> None:
    """A lost bit in flash is found by the next boot, which says where."""
    board.wait_for(lambda state: state["app_pid"])
    with console(board, baud=baud) as monitor:
        board.control.fault("corrupt_image", what)
        monitor.reset(says)


@pytest.mark.parametrize(
    ("name", "value", "variable"),
    [
        ("crystal", -50_000, "VBOARD_CRYSTAL_PPM=-50000"),
        ("rssi", -90, "VBOARD_RSSI_DBM=-90"),
        ("channel", 11, "VBOARD_CHANNEL=11"),
    ],
)
def test_surroundings_are_told_to_the_next_boots(
    board: BoardProcess, name: str, value: int, variable: str
) -> None:
    """The app that runs keeps its own; each that starts after it has the fault's, until it is cleared."""
    told = []
    for change in (lambda: board.control.fault(name, value), board.control.clear, lambda: None):
        boots = board.wait_for(lambda state: state["app_pid"])["boots"]
        environment = Path(f"/proc/{board.control.state()['app_pid']}/environ").read_bytes().decode()
        told.append(variable in environment.split("\0"))
        change()
        board.control.power("cycle")
        board.wait_for(lambda state, boots=boots: state["boots"] > boots)
    assert told == [False, True, False]


def test_faults_concern_one_board(
    board: BoardProcess, board_of: Callable[[str], BoardProcess], build_of: Callable[..., Path]
) -> None:
    """A fault of one board leaves the board beside it alone."""
    sound = board_of("esp32c3").renew(flash_files(build_of("esp32c3")))
    board.control.fault("silent")
    board.control.power("off")
    with console(sound) as monitor:
        monitor.echo("hello")
    assert sound.control.state()["faults"] == {}


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("no_snyc", None, "Unknown fault 'no_snyc'. Did you mean 'no_sync'?"),
        ("zzz", None, f"Faults: {', '.join(faults.FAULTS)}."),
        ("disconnect", "later", "'later'; it takes: now | boot | N | always | for-good."),
        ("brownout", 0, "0; it takes: N."),
        ("crystal", 200_000, "200000; it takes: N (-100000 to 100000)."),
        ("channel", 15, "it takes: N (1 to 13)."),
        ("panic", "Boredom", "it takes: LoadProhibited |"),
    ],
)
def test_unknown_fault_or_value_is_refused(name: str, value: object, says: str) -> None:
    """A wrong name or value is answered with what there is."""
    with pytest.raises(ConfigError) as error:
        faults.check(name, value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"op": "fault", "name": "brownout", "value": 0}, "does not take the value 0"),
        ({"op": "dance"}, "Unknown operation 'dance'"),
        ({"op": "power", "state": "half"}, "Power cannot be 'half'"),
    ],
)
def test_unknown_request_is_refused(board: BoardProcess, request_: dict[str, Any], says: str) -> None:
    """The control socket says what it does not know, and changes nothing."""
    with pytest.raises(ConfigError, match=says):
        board.control.request(**request_)
    assert board.control.state()["faults"] == {}


def test_faults_are_listed(board: BoardProcess) -> None:
    """The board tells every fault with what it does and the values it takes."""
    listed = board.control.faults()
    assert set(listed) == set(faults.FAULTS)
    assert all(entry["summary"] and entry["value"] for entry in listed.values())


def test_control_by_hand(board: BoardProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """The client module switches faults from a shell; a refusal is one sentence and exit code 2."""
    socket_path = str(board.folder / "control")
    assert client.main([socket_path, "fault", "garbage", "50"]) == 0
    assert board.control.state()["faults"] == {"garbage": 50}
    assert client.main([socket_path, "fault", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("Unknown fault 'nothing'.")


def test_board_that_is_gone_is_a_rig_error(tmp_path: Path) -> None:
    """A board whose process does not run is the rig's fault, and the sentence names the socket."""
    with pytest.raises(RigError, match=r"/control for 'state'"):
        BoardControl(tmp_path / "control").state()
