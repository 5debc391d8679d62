# SPDX-License-Identifier: Apache-2.0
"""A stand-in for QEMU with a chip in it that carries out the script in its flash.

It is what its app image says: a JSON object of what each part costs and of what goes wrong. ``build`` makes
such an image and the build folder around it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import os
import shutil
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.partition_table import TABLE_OFFSET, from_binary, read_csv, to_binary
from tests.session.fake_agent import FIRMWARE_SHA256, Columns, FakeAgent

APP_OFFSET = 0x10000
HEADER_BYTES = 24
CHIP_ID = 5  # esp32c3
DATA_ADDRESS = 0x3FC80000
SCRIPT_HEADER = struct.Struct("<8sII")
MARK = b"HILSEAL1"
COMPLAINT = b"bad-script"
PARAMETERS = {"part": "serialise", "payload_bytes": "128", "count": "32", "warmup": "8"}
SLOT_BYTES = 2_031_616
PROGRAM = """\
#!/bin/sh
case "$*" in
    --version) echo "QEMU emulator version 9.2.2 (esp_develop_9.2.2_20250817)" ;;
    "-machine help") printf "Supported machines are:\\nesp32c3    Espressif ESP32C3 machine\\n" ;;
    *) PYTHONPATH={root} exec {python} {here} "$@" ;;
esac
"""


def build(folder: Path, behaviour: Mapping[str, object], *, mark: bytes = COMPLAINT, table: str = "") -> Path:
    """Write a build folder as ESP-IDF leaves it; return it. ``table`` is another partition table's CSV."""
    folder.mkdir(parents=True)
    (folder / "app.bin").write_bytes(_image(json.dumps(behaviour).encode(), mark))
    csv = PROJECT_ROOT / "firmware" / "partitions.csv"
    if table:
        csv = folder / "partitions.csv"
        csv.write_text(table)
    (folder / "table.bin").write_bytes(to_binary(read_csv(csv)))
    flasher_args = {
        "flash_files": {hex(TABLE_OFFSET): "table.bin", hex(APP_OFFSET): "app.bin"},
        "app": {"file": "app.bin", "offset": hex(APP_OFFSET)},
        "extra_esptool_args": {"chip": "esp32c3"},
        "write_flash_args": [],
    }
    (folder / "flasher_args.json").write_text(json.dumps(flasher_args))
    return folder


def rebuild(folder: Path, behaviour: Mapping[str, object], *, tick_hz: int) -> Path:
    """Write a build folder in the place of what is there, as ESP-IDF does."""
    shutil.rmtree(folder, ignore_errors=True)
    build(folder, behaviour)
    (folder / "config").mkdir()
    (folder / "config" / "sdkconfig.json").write_text(json.dumps({"FREERTOS_HZ": tick_hz}))
    return folder


def _image(text: bytes, mark: bytes) -> bytes:
    """Return an app image of a single segment: how long the text is, the text, the mark."""
    data = struct.pack("<I", len(text)) + text + mark
    data += bytes(-len(data) % 4)
    header = b"\xe9\x01" + bytes(10) + struct.pack("<H", CHIP_ID) + bytes(9) + b"\x01"
    body = header + struct.pack("<II", DATA_ADDRESS, len(data)) + data
    body += bytes(-(len(body) + 1) % 16)
    body += bytes([functools.reduce(operator.xor, data, 0xEF)])
    return body + hashlib.sha256(body).digest()


def install(folder: Path) -> Path:
    """Write a program that runs this module to ``folder``; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "qemu-system-riscv32"
    path.write_text(PROGRAM.format(root=PROJECT_ROOT, python=sys.executable, here=Path(__file__).resolve()))
    path.chmod(0o755)
    return path


def boot(flash: bytes) -> list[str]:
    """Return what the chip prints."""
    app = flash[APP_OFFSET:]
    segment_bytes, length = struct.unpack_from("<II", app, HEADER_BYTES + 4)
    text_at = HEADER_BYTES + 8 + 4
    behaviour = json.loads(app[text_at : text_at + length])
    end = ((HEADER_BYTES + 8 + segment_bytes) // 16 + 1) * 16  # of padding and checksum
    sha256 = hashlib.sha256(app[:end]).hexdigest()
    lines = ["ESP-ROM:esp32c3-api1-20210207", "rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)"]
    if behaviour.get("noise"):
        lines.append(f"I (30) main: random id {os.urandom(4).hex()}")
    commands = script_in(flash).splitlines()
    bench = behaviour.get("bench") or _bench_of(commands)
    exact = {"footprint": _footprint(end), "sections": _sections()}
    agent = FakeAgent(
        bench=bench,
        parameters={} if bench in exact else PARAMETERS,
        status=behaviour.get("status", "ok"),
        failure=behaviour.get("failure", ""),
        environment=memory(behaviour),
        edit_line=lambda line: line.replace(FIRMWARE_SHA256, sha256).replace("esp_timer", "instructions"),
    )
    lines.append(agent.hello())
    if "crash" in behaviour:
        return [*lines, behaviour["crash"]]
    for command in commands:
        agent.warmup_rows = int(_words(command).get("warmup", 0))
        agent.bursts = [exact.get(bench) or _costs(behaviour, command)]
        lines += agent.take(command)
        lines += [line for _when, action in agent.due for line in action()]
    if behaviour.get("hangs"):
        return lines
    done = agent.line("R", "sealed ok status=0 commands=1 refused=0 transfers=1 failed=0")
    return [*lines, done, "I (900) main: what comes later is not of the run"]


def memory(behaviour: Mapping[str, Any]) -> dict[str, int]:
    """Return what the end line says of the chip's memory."""
    stacks = {f"stack_free_min_{task}_bytes": 3000 for task in ("agent_run", "mqtt_task", "tiT")}
    return {"heap_min_bytes": 90_000, **stacks, **behaviour.get("memory", {})}


def _bench_of(commands: Sequence[bytes]) -> str:
    words = b" ".join(commands).decode().split()
    return words[words.index("run") + 1] if "run" in words else "cost"


def _words(command: bytes) -> dict[str, str]:
    pairs = (word.partition("=") for word in command.decode().split())
    return {key: value for key, sign, value in pairs if sign}


def _costs(behaviour: Mapping[str, Any], command: bytes) -> Columns:
    words = _words(command)
    least = behaviour["costs"][words["part"]]
    rows = [least + row % 3 for row in range(int(words["warmup"]) + int(words["count"]))]
    return {"cost_instructions": rows, "outcome": [0] * len(rows)}


def _footprint(image_bytes: int) -> Columns:
    return {"image_bytes": [image_bytes], "slot_free_bytes": [SLOT_BYTES - image_bytes]}


def _sections() -> Columns:
    names = ("text_bytes", "rodata_bytes", "iram_bytes", "data_bytes", "bss_bytes")
    return {name: [1000 + number] for number, name in enumerate(names)}


def script_in(flash: bytes) -> bytes:
    offset = next(part.offset for part in from_binary(flash[TABLE_OFFSET:]) if part.name == "scratch")
    mark, length, _crc = SCRIPT_HEADER.unpack_from(flash, offset)
    assert mark == MARK
    at = offset + SCRIPT_HEADER.size
    return flash[at : at + length]


def main() -> None:
    argv = sys.argv[1:]
    drives = [argv[at + 1] for at, word in enumerate(argv) if word == "-drive"]
    flash = next(drive for drive in drives if "if=mtd" in drive).partition(",")[0].removeprefix("file=")
    console = argv[argv.index("-serial") + 1].removeprefix("file:")
    assert "sleep=off" in argv[argv.index("-icount") + 1]
    with Path(console).open("w") as file:
        for line in boot(Path(flash).read_bytes()):
            print(line, file=file, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
