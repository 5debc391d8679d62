# SPDX-License-Identifier: Apache-2.0
"""What the firmware on the host does by its flash: it carries out a script with nobody at its console (sealed
runs), and keeps an image that came over the air once the host has talked to it.
"""

from __future__ import annotations

import os
import struct
import subprocess
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware import otadata
from hil.boards.firmware.partition_table import TABLE_OFFSET, read_csv, to_binary
from hil.session.transfer import Transfer
from hil.wire import Begin, Data, End, Hello, Message, Reply, format_command, parse_line
from tests.virtual.virtual_board_rig import write_flash_file

pytestmark = pytest.mark.slow

FLASH_BYTES = 4 << 20
TABLE = read_csv(PROJECT_ROOT / "firmware" / "partitions.csv")
TEXT_MAX_BYTES = 65520
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Log:
    messages: tuple[Message, ...]

    @property
    def hello(self) -> Hello:
        return next(message for message in self.messages if isinstance(message, Hello))

    def replies(self) -> list[tuple[str, bool, str]]:
        """Return tag, whether it is ok, and the code of each reply but the last."""
        found = [message for message in self.messages if isinstance(message, Reply)]
        return [(reply.tag, reply.ok, reply.code) for reply in found[:-1]]

    @property
    def last(self) -> Reply:
        reply = self.messages[-1]
        assert isinstance(reply, Reply)
        return reply

    def transfers(self) -> list[Transfer]:
        found: dict[int, Transfer] = {}
        for message in self.messages:
            if isinstance(message, Begin | Data | End):
                found.setdefault(message.transfer, Transfer(message.transfer)).add(message)
        return list(found.values())


def script(*lines: bytes) -> bytes:
    return sealed(b"".join(lines))


def sealed(text: bytes) -> bytes:
    return b"HILSEAL1" + struct.pack("<II", len(text), zlib.crc32(text)) + text


def run(firmware: Path, folder: Path, parts: Mapping[int, bytes], said: bytes, **variables: str) -> bytes:
    """Run the firmware once on a fresh flash with these parts, to the end of what it is told; return its
    log."""
    path = write_flash_file(folder / "flash.bin", {TABLE_OFFSET: to_binary(TABLE), **parts}, FLASH_BYTES)
    own = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
    with path.open("r+b") as file:
        done = subprocess.run(
            [firmware], input=said, capture_output=True, timeout=TIMEOUT_S, check=False,
            pass_fds=[file.fileno()], env={**own, **variables, "VBOARD_FLASH_FD": str(file.fileno())},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Sanitizer" not in done.stderr
    return done.stdout


def boot(firmware: Path, folder: Path, content: bytes) -> Log:
    """Boot with a partition ``scratch`` that begins so, without any input."""
    offset = next(partition.offset for partition in TABLE if partition.name == "scratch")
    return Log(tuple(_messages(run(firmware, folder, {offset: content}, b"").splitlines())))


def _messages(lines: Iterable[bytes]) -> Iterable[Message]:
    """Yield the marked lines, of which none is missing."""
    found = [message for line in lines if (message := parse_line(line)) is not None]
    assert [message.number for message in found] == list(range(1, len(found) + 1))
    return found


def test_a_script_is_carried_out_without_a_word_from_outside(firmware: Path, tmp_path: Path) -> None:
    """Each line is answered, a case of several bursts comes whole, and the last line says how it went."""
    commands = (
        format_command("info", tag="a-1"),
        format_command("run", "memory", "count=20", "warmup=1", tag="a-2"),
        b"list memory\n",
    )
    log = boot(firmware, tmp_path, script(*commands))
    assert log.replies() == [("a-1", True, ""), ("a-2", True, ""), ("-", True, "")]
    transfers = log.transfers()
    assert len(transfers) > 1
    bursts = [transfer.burst() for transfer in transfers]
    assert [burst.end.last for burst in bursts] == [False] * (len(bursts) - 1) + [True]
    rows_a_round = bursts[0].begin.warmup_rows
    assert sum(burst.begin.rows for burst in bursts) == 21 * rows_a_round
    assert log.last.tag == "sealed"
    assert log.last.ok
    counts = {key: int(value) for key, value in log.last.fields.items()}
    assert counts == {"status": 0, "commands": 3, "refused": 0, "transfers": len(bursts), "failed": 0}


def test_the_same_script_gives_the_same_boot(firmware: Path, tmp_path: Path) -> None:
    """What is random in an ordinary boot comes from the script in a sealed one."""
    first, again, other = (
        boot(firmware, tmp_path, script(format_command(*words)))
        for words in (("hello",), ("hello",), ("hello", 1))
    )
    assert first.hello.boot == again.hello.boot == f"{zlib.crc32(format_command('hello')):08x}"
    assert other.hello.boot != first.hello.boot


def test_what_is_refused_and_what_fails_is_counted(firmware: Path, tmp_path: Path) -> None:
    """A script goes on after a line that went wrong, and its status is not 0."""
    commands = (
        b"#a-1 info *00000000\n",
        b"run unheard_of\n",
        b"x" * 1024 + b"\n",
        format_command("run", "memory", "memory=psram", tag="a-4"),
        format_command("info", tag="a-5"),
    )
    log = boot(firmware, tmp_path, script(*commands))
    assert log.replies() == [
        ("-", False, "bad-crc"),
        ("-", False, "unknown-bench"),
        ("-", False, "bad-line"),
        ("a-4", True, ""),
        ("a-5", True, ""),
    ]
    (transfer,) = log.transfers()
    assert transfer.burst().end.status == "ESP_ERR_NOT_SUPPORTED"
    counts = {key: int(value) for key, value in log.last.fields.items()}
    assert counts == {"status": 1, "commands": 5, "refused": 3, "transfers": 1, "failed": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (script(b"info\n")[:-5] + b"inf0\n", "crc32"),
        (script(b"info\0\n"), "text"),
        (b"HILSEAL1" + struct.pack("<II", 0, 0), "length"),
        (b"HILSEAL1" + struct.pack("<II", TEXT_MAX_BYTES + 1, 0), "length"),
    ],
)
def test_a_damaged_script_is_not_begun(firmware: Path, tmp_path: Path, content: bytes, reason: str) -> None:
    """The board says what is wrong with it, and is an ordinary one."""
    log = boot(firmware, tmp_path, content)
    assert not log.replies()
    assert (log.last.tag, log.last.ok, log.last.code) == ("sealed", False, "bad-script")
    assert log.last.fields == {"reason": reason}


def test_without_a_script_a_boot_is_an_ordinary_one(firmware: Path, tmp_path: Path) -> None:
    """Of an erased partition, and of one that a load on the flash has written to, nothing is said."""
    for content in (b"", b"\0" * 4096):
        assert [type(message) for message in boot(firmware, tmp_path, content).messages] == [Hello]


OTADATA = 0xD000
HELLO = format_command("hello", tag="a-1")


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        (otadata.STATE_PENDING_VERIFY, HELLO, otadata.STATE_VALID),
        (otadata.STATE_PENDING_VERIFY, b"", otadata.STATE_PENDING_VERIFY),
        (otadata.STATE_PENDING_VERIFY, b"hello @a-1 *00000000\n", otadata.STATE_PENDING_VERIFY),
        (otadata.STATE_UNDEFINED, HELLO, otadata.STATE_UNDEFINED),
    ],
    ids=("a command", "nothing", "a damaged line", "flashed by the host"),
)
def test_a_command_confirms_the_image(
    firmware: Path, tmp_path: Path, before: int, said: bytes, after: int
) -> None:
    """The first command that arrives whole does, and writes only where the boot loader waits for it."""
    run(firmware, tmp_path, {OTADATA: otadata.pack(1, before)}, said, VBOARD_APP_OFFSET="10000")
    now = (tmp_path / "flash.bin").read_bytes()[OTADATA : OTADATA + 2 * otadata.SECTOR_BYTES]
    assert now == otadata.pack(1, after).ljust(2 * otadata.SECTOR_BYTES, b"\xff")
