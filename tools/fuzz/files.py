# SPDX-License-Identifier: Apache-2.0
"""The readers of files: settings, what runs have stored, and images."""

from __future__ import annotations

import datetime
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.fuzz import mutate
from tools.fuzz.target import ROOT, Fuzz, Target, instrumented, of_file, one_of, refuses

STORED = ROOT / "tests" / "golden" / "stored" / "out" / "20261121T141500Z-pr-60fd"
# what no byte-wise change comes to by itself
_DEEP = (b"[" * 20_000, b'{"a":' * 20_000, b"[" * 5_000 + b"]" * 5_000, b"9" * 5_000, b'{"schema": 1e999}')


# settings


def _rack() -> Fuzz:
    with instrumented():
        from hil.boards.rack.loader import load_rack
    return of_file("rack.yaml", load_rack)


def _thresholds() -> Fuzz:
    with instrumented():
        from hil.thresholds import load
    today = datetime.date(2026, 1, 1)
    return of_file("wake.yaml", lambda path: load("wake", path.parent, today=today))


def _partitions() -> Fuzz:
    with instrumented():
        from hil.boards.firmware.partition_table import read_csv, to_binary
    return of_file("partitions.csv", lambda path: to_binary(read_csv(path)))


def _flasher_args() -> Fuzz:
    with instrumented():
        from hil.boards.firmware import build_folder
        from hil.boards.flash.tool import write_of
    return of_file(
        "flasher_args.json",
        lambda path: write_of(path.parent, [(0, one[1]) for one in build_folder.flash_files(path.parent)]),
    )


def _flasher_args_seeds() -> Iterator[bytes]:
    yield from _DEEP
    yield json.dumps(
        {
            "write_flash_args": ["--flash_mode", "dio", "--flash_size", "4MB"],
            "flash_files": {"0x1000": "flasher_args.json", "0x8000": "../x"},
            "app": {"offset": "0x10000", "file": "flasher_args.json"},
            "extra_esptool_args": {"before": "default_reset", "after": "hard_reset", "chip": "esp32"},
        }
    ).encode()


def _files(*patterns: str) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                yield path.read_bytes()

    return seeds


# what runs have stored


def _journal() -> Fuzz:
    with instrumented():
        from hil.store.journal import parse_journal
    return refuses(lambda data: parse_journal(Path("records.jsonl"), data))


def _journal_seeds() -> Iterator[bytes]:
    kinds = {
        entry["type"]: entry
        for entry in map(json.loads, (STORED / "records.jsonl").read_bytes().splitlines())
    }
    yield from _DEEP
    for entry in kinds.values():
        yield json.dumps(_small(entry)).encode() + b"\n"


def _small(value: Any) -> Any:
    """Return a JSON value of which each list has an item or two: what a mutation hits is a key of it."""
    if isinstance(value, dict):
        return {key: _small(content) for key, content in value.items()}
    return [_small(item) for item in value[:2]] if isinstance(value, list) else value


def _small_files(pattern: str) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        yield from _DEEP
        for path in sorted(ROOT.glob(pattern)):
            yield json.dumps(_small(json.loads(path.read_bytes()))).encode()

    return seeds


def _verdict() -> Fuzz:
    with instrumented():
        from hil.store.verdicts import parse_verdict
    return refuses(lambda data: parse_verdict(Path("verdicts.json"), data))


def _run_info() -> Fuzz:
    with instrumented():
        from hil.store.run_info import parse_info
    return refuses(lambda data: parse_info(Path("run.json"), data))


def _summary() -> Fuzz:
    with instrumented():
        from hil.history.files import read_summary
    return of_file(f"lab/{STORED.name}.json", read_summary)


def _artefact() -> Fuzz:
    with instrumented():
        from hil.ci.artefact import unpack

    def read(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                unpack(data, Path(folder) / "in" / "to")
            finally:
                assert not [one for one in Path(folder).rglob("*") if one.is_symlink()]

    return refuses(read)


def _artefact_seeds() -> Iterator[bytes]:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            archive.writestr("ci-plan.json", b'{"schema": 1}')
            archive.writestr("thresholds/publish.yaml", b"schema: 1\n")
        yield packed.getvalue()


# images


def _image() -> Fuzz:
    with instrumented():
        from hil.boards.firmware import app_image, otadata, partition_table

    def app(data: bytes) -> None:
        with suppress(app_image.ImageError):
            image = app_image.read_image(lambda at, size: data[at : at + size], 0, len(data))
            app_image.unpack_app_description(image)
            app_image.unpack_bootloader_description(image)
            app_image.unpack_elf(image)

    def table(data: bytes) -> None:
        with suppress(partition_table.TableError):
            partition_table.from_binary(data, flash_bytes=4 << 20)

    def slots(data: bytes) -> None:
        entries = [otadata.unpack(data[at : at + 32]) for at in (0, 32)] if len(data) >= 64 else []
        slot = otadata.select(entries, slot_count=2) if entries else None
        assert slot in (None, 0, 1)

    return one_of(app, table, slots)


def _image_seeds() -> Iterator[bytes]:
    from hil.boards.firmware import image, otadata, partition_table

    layout = image.layout_of("esp32")
    yield b"\0" + image._bootloader_image(layout, 921_600, partition_table.TABLE_OFFSET)
    table = partition_table.read_csv(ROOT / "firmware" / "partitions.csv")
    yield b"\1" + partition_table.to_binary(table)
    yield b"\2" + otadata.pack(1) + otadata.pack(2)


_OF_A_RUN = "tests/golden/stored/out/*/run.json"
_OF_A_VERDICT = "tests/golden/rendered/verdicts.json"
_OF_THE_LEDGER = "tests/golden/stored/out/history/lab/20261121*.json"
_LARGE = 65_536  # bytes
TARGETS: Sequence[Target] = (
    Target("rack", _rack, _files("hil/racks/*.yaml"), mutate.of_lines),
    Target("thresholds", _thresholds, _files("thresholds/wake.yaml"), mutate.of_lines),
    Target("partitions", _partitions, _files("firmware/partitions.csv"), mutate.of_lines),
    Target("flasher-args", _flasher_args, _flasher_args_seeds, mutate.of_json),
    Target("journal", _journal, _journal_seeds, mutate.of_json, _LARGE),
    Target("verdict", _verdict, _small_files(_OF_A_VERDICT), mutate.of_json, _LARGE),
    Target("run", _run_info, _small_files(_OF_A_RUN), mutate.of_json, _LARGE),
    Target("ledger", _summary, _small_files(_OF_THE_LEDGER), mutate.of_json, _LARGE),
    Target("artefact", _artefact, _artefact_seeds),
    Target("image", _image, _image_seeds),
)
