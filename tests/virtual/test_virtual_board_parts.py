# SPDX-License-Identifier: Apache-2.0
"""The parts of a virtual board, each alone: flash, SLIP, wires, reset circuit, watchdog, otadata, loader."""

from __future__ import annotations

import asyncio
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hil.base.errors import ConfigError, RigError
from hil.boards.firmware import otadata
from hil.boards.firmware.app_image import xor_bytes
from hil.virtual.board import chips, faults, machine, panic, slip
from hil.virtual.board import reset as resets
from hil.virtual.board.cable import Wire, resample, same_baud
from hil.virtual.board.chip import DETECTIONS, MAGIC_REGISTER, VirtualChip
from hil.virtual.board.chips import ESP32, ESP32C3, ESP32S3, crc8_dallas
from hil.virtual.board.config import BoardConfig
from hil.virtual.board.flash import FlashRangeError, NorFlash
from hil.virtual.board.flash_commands import LoaderActions
from hil.virtual.board.loader import SerialLoader
from hil.virtual.board.reset import STRAP_DELAY_S, ResetActions, ResetCircuit

CHECKOUT = Path(__file__).resolve().parents[2]
MAC = bytes.fromhex("240ac4000001")


@pytest.fixture
def flash(tmp_path: Path) -> NorFlash:
    return NorFlash(tmp_path / "flash.bin", 64 << 10)


def test_flash_programming_only_clears_bits_and_erases_whole_sectors(flash: NorFlash) -> None:
    """NOR flash: a programmed byte is the AND of old and new, and only an erase sets bits, those of every
    sector that it touches, and of no other."""
    flash.program(0x100, b"\xf0\x0f\xff")
    flash.program(0x100, b"\x3c\x3c\x3c")
    assert flash.read(0x100, 3) == b"\x30\x0c\x3c"
    flash.program(0, bytes(0x4000))
    flash.erase(0x1FFF, 2)
    assert flash.read(0, 0x4000) == bytes(0x1000) + b"\xff" * 0x2000 + bytes(0x1000)


@pytest.mark.parametrize(("offset", "length"), [(0xFFFF, 2), (0x20000, 1), (-1, 1)])
def test_flash_ends_where_it_ends(flash: NorFlash, offset: int, length: int) -> None:
    """An access that does not lie in the flash is refused whole."""
    with pytest.raises(FlashRangeError):
        flash.program(offset, bytes(length))
    with pytest.raises(FlashRangeError):
        flash.read(offset, length)


def test_flash_belongs_to_one_board(flash: NorFlash, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second board is refused the file, by its name, and gets it when the first has let go of it."""
    monkeypatch.setattr("hil.virtual.board.flash.LOCK_TIMEOUT_S", 0.05)
    flash.program(0, b"\x12")
    with pytest.raises(RigError, match=rf"The flash file {flash.path} is in use by another board"):
        NorFlash(flash.path, flash.size_bytes)
    flash.close()
    again = NorFlash(flash.path, flash.size_bytes)
    assert again.read(0, 2) == b"\x12\xff"
    again.close()


def test_flash_file_of_another_size_is_left_alone(tmp_path: Path) -> None:
    """A file that is no flash of this board is not overwritten."""
    other = tmp_path / "other.bin"
    other.write_bytes(b"precious")
    with pytest.raises(ConfigError, match="has 8 bytes, not the 65536 bytes"):
        NorFlash(other, 64 << 10)
    assert other.read_bytes() == b"precious"


def test_flash_file_of_an_earlier_hil_grows(tmp_path: Path) -> None:
    """What lay in its 4 MB stays there, and the rest is erased."""
    earlier = tmp_path / "flash.bin"
    earlier.write_bytes(b"\x12" * (4 << 20))
    flash = NorFlash(earlier, 16 << 20)
    assert flash.read((4 << 20) - 1, 2) == b"\x12\xff"
    assert flash.read((16 << 20) - 1, 1) == b"\xff"
    flash.close()


# Is killed by the system as soon as the flash file's content has grown beyond a page.
KILLED_IN_CREATION = """
import resource, sys
from pathlib import Path
from hil.virtual.board.flash import NorFlash
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
NorFlash(Path(sys.argv[1]), 64 << 10)
"""


@pytest.mark.slow
def test_flash_killed_in_creation_is_created_anew(tmp_path: Path) -> None:
    """A board that dies while it creates its flash leaves none, and the next one's is erased throughout."""
    path = tmp_path / "flash.bin"
    argv = [sys.executable, "-c", KILLED_IN_CREATION, str(path)]
    killed = subprocess.run(argv, cwd=CHECKOUT, check=False, timeout=60)
    assert killed.returncode == -signal.SIGXFSZ
    assert not path.exists()
    flash = NorFlash(path, 64 << 10)
    assert flash.read(0, 64 << 10) == b"\xff" * (64 << 10)
    flash.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["flash.bin"]


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=8), st.integers(1, 20))
@example([b"\xdb\xdc", b"\xdb\xdd\xc0"], 3)  # bytes that look like escapes
def test_slip_packets_survive(packets: list[bytes], chunk: int) -> None:
    """What is encoded is decoded, however the stream is cut."""
    stream = b"".join(map(slip.encode, packets))
    decoder = slip.Decoder()
    found = [p for at in range(0, len(stream), chunk) for p in decoder.feed(stream[at : at + chunk])]
    assert found == packets


@given(st.binary(max_size=300))
def test_xor_folds(data: bytes) -> None:
    """The folded XOR is the XOR of all bytes."""
    plain = 0
    for byte in data:
        plain ^= byte
    assert xor_bytes(data) == plain


@given(st.binary(max_size=100), st.sampled_from([115200, 921600]))
def test_equal_rates_deliver_the_bytes(data: bytes, baud: int) -> None:
    """Within a receiver's tolerance nothing is changed."""
    assert resample(data, sent_baud=baud, received_baud=int(baud * 1.02)) == data
    assert same_baud(baud, int(baud * 0.98))


def test_fast_receiver_sees_one_bit_as_many() -> None:
    """At eight times the sender's rate one start bit, eight fast bits long, reads as a zero byte."""
    assert resample(b"\xff", sent_baud=115200, received_baud=921600)[:1] == b"\x80"
    assert resample(b"\xfe", sent_baud=115200, received_baud=921600)[:1] == b"\x00"


def test_paced_wire_takes_its_time_and_keeps_the_rate() -> None:
    """Bytes arrive in order, not before the wire has carried them, each garbled by its own rate only."""

    async def run() -> tuple[bytes, float]:
        received = bytearray()
        drained = asyncio.Event()
        wire = Wire(received.extend, received_baud=lambda: 115200, paced=True, on_drained=drained.set)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        wire.send(b"a" * 200, sent_baud=115200)
        wire.send(b"b" * 200, sent_baud=115200)
        await asyncio.wait_for(drained.wait(), 10)
        return bytes(received), loop.time() - started_s

    received, took_s = asyncio.run(run())
    assert received == b"a" * 200 + b"b" * 200
    assert took_s >= 400 * 10 / 115200  # slower it may be; faster it cannot be


class Circuit:
    """A reset circuit with a clock that the test moves."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.pending: Callable[[], None] | None = None
        self.circuit = ResetCircuit(
            ResetActions(
                hold=lambda: self.events.append("hold"),
                release=lambda low: self.events.append("download" if low else "run"),
                call_later=self.call_later,
            )
        )

    def call_later(self, delay_s: float, action: Callable[[], None]) -> Circuit:
        assert delay_s == STRAP_DELAY_S
        self.pending = action
        return self

    def cancel(self) -> None:
        self.pending = None

    def lines(self, *states: tuple[int, int]) -> list[str]:
        for dtr, rts in states:
            self.circuit.set_lines(dtr=bool(dtr), rts=bool(rts))
        return self.events


@pytest.mark.parametrize(
    ("states", "events"),
    [
        ([(1, 0), (1, 1), (0, 0)], []),
        ([(0, 1), (0, 0)], ["hold", "run"]),
        ([(0, 1), (1, 1), (1, 0), (0, 0)], ["hold", "download"]),
        ([(0, 1), (1, 0)], ["hold", "download"]),
        ([(1, 0), (1, 1), (0, 1), (0, 0)], ["hold", "run"]),
    ],
    ids=("open-and-close", "hard-reset", "classic-reset", "tight-reset", "reset-after-open"),
)
def test_reset_sequences(states: list[tuple[int, int]], events: list[str]) -> None:
    """The line sequences of pyserial, esptool and idf.py monitor do to the chip what they do on a DevKit."""
    assert Circuit().lines(*states) == events


def test_the_strap_is_sampled_once_the_lines_stay() -> None:
    """esptool lets go of one line after the other: the chip starts once, by how they are in the end. Where EN
    rises with both lines asserted, it runs from flash once the sampling delay is over."""
    circuit = Circuit()
    circuit.lines((0, 1), (1, 1), (1, 0))
    assert (circuit.events, circuit.pending) == (["hold", "download"], None)
    circuit = Circuit()
    assert circuit.lines((0, 1), (1, 1)) == ["hold"]
    assert circuit.pending is not None
    circuit.pending()
    assert circuit.events == ["hold", "run"]


def test_checksums_are_those_of_the_chip() -> None:
    """Of otadata's sequence 1 the constant that ESP-IDF's otatool writes; beside the MAC address Dallas'
    CRC-8, whose check value of the nine digits is 0xA1."""
    assert otadata.sequence_crc(1) == 0x4743989A
    assert len(otadata.pack(1)) == 32
    assert crc8_dallas(b"123456789") == 0xA1


def test_unknown_chip_is_named() -> None:
    """A chip that cannot be emulated is answered with those that can."""
    assert chips.by_name("esp32") is ESP32
    with pytest.raises(ConfigError, match="choose from: esp32"):
        chips.by_name("esp8266")


def test_every_fault_accepts_its_default() -> None:
    """The default of each fault is one of the values that it takes."""
    for name, fault in faults.FAULTS.items():
        assert faults.check(name) == (fault, fault.default)


@pytest.mark.parametrize(
    ("status", "head", "reset"),
    [
        (0, "", resets.SOFTWARE),
        (-6, "\r\nabort() was called", resets.PANIC),
        (1, "E (5) vboard: ", resets.PANIC),
        (-signal.SIGXCPU, "", resets.INTERRUPT_WATCHDOG),
        (-signal.SIGVTALRM, "", resets.TASK_WATCHDOG),
    ],
)
def test_exit_status_is_a_reset(status: int, head: str, reset: resets.Reset) -> None:
    """Each way for a process to end is a way for a chip to restart."""
    crash = panic.from_exit(ESP32, status, bytes(32), 5)
    assert crash.text.startswith(head)
    assert crash.reset is reset


class Loader:
    """A loader with its wire in memory."""

    def __init__(self, flash: NorFlash, chip: VirtualChip = ESP32) -> None:
        self.sent = bytearray()
        self.baud = 115200
        self.restarts: list[bool] = []
        actions = LoaderActions(
            transmit=self.sent.extend,
            baud=lambda: self.baud,
            set_baud=self.set_baud,
            restart=self.restarts.append,
            set_watchdog=lambda _: None,
            disconnect=lambda: None,
        )
        self.loader = SerialLoader(chip, flash, MAC, faults.ActiveFaults(), actions)

    def set_baud(self, baud: int) -> None:
        self.baud = baud

    def command(self, op: int, data: bytes = b"", checksum: int = 0) -> list[bytes]:
        self.sent.clear()
        self.loader.feed(slip.encode(struct.pack("<BBHI", 0, op, len(data), checksum) + data))
        return list(slip.Decoder().feed(bytes(self.sent)))


def status(reply: bytes) -> tuple[int, int]:
    return reply[8], reply[9]


def test_rom_answers_sync_eight_times(flash: NorFlash) -> None:
    """SYNC is answered eight times, by the ROM with a value that is not zero."""
    replies = Loader(flash).command(0x08, b"\x07\x07\x12\x20" + b"\x55" * 32)
    assert len(replies) == 8
    assert all(int.from_bytes(reply[4:8], "little") for reply in replies)


@pytest.mark.parametrize(
    ("op", "data", "checksum", "code"),
    [
        (0x14, b"", 0, 0x05),
        (0xD0, b"", 0, 0x05),
        (0x0A, b"\0", 0, 0x05),
        (0x03, struct.pack("<4I", 4, 0, 0, 0) + b"abc", 0, 0x05),
        (0x03, struct.pack("<4I", 3, 0, 0, 0) + b"abc", 0, 0x07),
        (0x03, struct.pack("<4I", 0, 0, 0, 0), 0xEF, 0x06),
        (0x02, struct.pack("<4I", 0x1000, 1, 0x400, 0x10000), 0, 0x06),
    ],
    ids=("no-security-info", "stub-only", "short", "length", "checksum", "not-begun", "beyond-flash"),
)
def test_rom_refuses(flash: NorFlash, op: int, data: bytes, checksum: int, code: int) -> None:
    """The ROM answers a command that it does not know, or that is wrong, with an error code."""
    (reply,) = Loader(flash).command(op, data, checksum)
    assert status(reply) == (1, code)


def test_stub_answers_after_mem_end(flash: NorFlash) -> None:
    """An entry point starts the stub: OHAI, shorter status, its own commands and error codes."""
    loader = Loader(flash)
    reply, ohai = loader.command(0x06, struct.pack("<II", 0, 0x4009F000))
    assert status(reply) == (0, 0)
    assert ohai == b"OHAI"
    (reply,) = loader.command(0xD0)
    assert len(reply) == 8 + 2
    (reply,) = loader.command(0x77)
    assert status(reply) == (1, 0xFF)


def test_damaged_compressed_block_is_refused(flash: NorFlash) -> None:
    """Data that do not inflate are an error of the block, and flash keeps what it had."""
    loader = Loader(flash)
    loader.command(0x10, struct.pack("<4I", 0x1000, 1, 0x400, 0))
    block = b"not zlib"
    (reply,) = loader.command(0x11, struct.pack("<4I", len(block), 0, 0, 0) + block, 0xEF ^ xor_bytes(block))
    assert status(reply) == (1, 0x0B)
    assert flash.read(0, 16) == b"\xff" * 16


def test_chip_answers_with_its_own_detection(flash: NorFlash) -> None:
    """What tells the chip apart is in its description; without the fault nothing else decides."""
    loader = Loader(flash, replace(ESP32, detection=DETECTIONS["esp8266"]))
    (reply,) = loader.command(0x0A, struct.pack("<I", MAGIC_REGISTER))
    assert int.from_bytes(reply[4:8], "little") == DETECTIONS["esp8266"].magic


@given(st.binary(max_size=200))
def test_noise_is_survived(noise: bytes) -> None:
    """Whatever comes over the wire, the loader still answers the next SYNC."""
    with tempfile.TemporaryDirectory() as folder:
        flash = NorFlash(Path(folder) / "flash.bin", 4096)
        loader = Loader(flash)
        loader.loader.feed(noise + b"\xc0")
        replies = loader.command(0x08, b"\x07\x07\x12\x20" + b"\x55" * 32)
        flash.close()
    assert len(replies) == 8


WATCHDOG_S = 0.05


@pytest.mark.parametrize("chip", [ESP32C3, ESP32S3], ids=lambda chip: chip.name)
@pytest.mark.parametrize(
    ("switched", "reasons"),
    [
        ((True, True), ["POWERON", "WDT"]),  # it bites once, and the straps still say download
        ((True, False), ["POWERON"]),  # esptool does that to every chip it connects to
        ((True, False, True), ["POWERON", "WDT"]),
    ],
    ids=["armed", "disarmed", "armed again"],
)
def test_an_armed_watchdog_resets_the_board_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chip: VirtualChip,
    switched: tuple[bool, ...],
    reasons: list[str],
) -> None:
    """A serial client arms it to reset the chip; of all that is written before its time the last decides."""
    monkeypatch.setattr(machine, "RTC_WATCHDOG_DELAY_S", WATCHDOG_S)
    watchdog = chip.rtc_watchdog
    assert watchdog is not None
    downloads: list[str] = []

    def log(line: str) -> None:
        if line == "download mode":
            downloads.append(board.reset_reason.reason)

    async def write_registers() -> None:
        board.circuit.set_lines(dtr=True, rts=False)
        board.power_on()
        for on in switched:
            for address, value in (  # unlocked, written, locked again: as esptool does
                (watchdog.protect, watchdog.key),
                (watchdog.config1, 2000),
                (watchdog.config0, watchdog.enable_bit if on else 0),
                (watchdog.protect, 0),
            ):
                data = struct.pack("<4I", address, value, 0xFFFFFFFF, 0)
                board.cable.receive(slip.encode(struct.pack("<BBHI", 0, 0x09, len(data), 0) + data))
        passed = asyncio.Event()
        machine.call_later(3 * WATCHDOG_S, passed.set)  # behind every timer that is due earlier
        await passed.wait()
        board.close()

    flash = NorFlash(tmp_path / "flash.bin", chip.flash_bytes)
    board = machine.VirtualBoard(BoardConfig("b1", chip, bytes(6)), flash, log)
    asyncio.run(write_registers())
    assert downloads == reasons
