# SPDX-License-Identifier: Apache-2.0
"""What `make emulated-check` stands on, without QEMU: what is wrong is found, what cannot be done is told."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.base.paths import TOOL_THRESHOLDS
from hil.boards.firmware.app_image import (
    CHECKSUM_SEED,
    HEADER,
    MAGIC,
    SEGMENT_HEADER,
    ImageError,
    read_image,
    xor_bytes,
)
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import find_firmware
from hil.store import RunDirectory, read_measured
from hil.thresholds import project_files
from hil.thresholds.loader import FOLDER
from hil.virtual.emulator.drivers import find_counting
from tests.make_records import publish_record, run_info
from tests.run import sealed_chip
from tools.check_report import Report
from tools.emulated_check import __main__ as emulated_check
from tools.emulated_check import inputs, panic, steps
from tools.emulated_check.bench import Bench, Ended
from tools.emulated_check.inputs import Inputs
from tools.emulated_repeat import told

DISCONNECT = next(fault for fault in steps.FAULTS if fault.name == "disconnect")


@pytest.mark.parametrize(
    ("has_qemu", "ways_out"),
    [
        (False, ["idf_tools.py install qemu"]),
        (True, [". $IDF_PATH/export.sh", "emulated-check FIRMWARE=DIR"]),
    ],
)
def test_what_is_not_there_is_told_with_the_ways_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_qemu: bool,
    ways_out: list[str],
) -> None:
    """Exit 2, nothing on the transcript: without QEMU ESP-IDF's command for it is told; without an image and
    ESP-IDF, to source its script, or to name a build."""
    for name in ("IDF_PATH", "FIRMWARE", "BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(sealed_chip.install(tmp_path / "bin")) if has_qemu else "")
    monkeypatch.setenv("IDF_TOOLS_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert emulated_check.main() == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert [words for words in ways_out if words not in said] == []


def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: Mapping[str, object]) -> Bench:
    """Make a bench with the stand-in for QEMU and the chip in it."""
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(sealed_chip.install(tmp_path / "bin")))
    build = sealed_chip.build(tmp_path / "build", behaviour)
    found = Inputs(find_counting(inputs.CHIP), find_firmware(build, Image(inputs.CHIP)), None)
    return Bench(tmp_path / "check", found)


@pytest.mark.heavy
@pytest.mark.slow
def test_sealed_runs_are_compared_over_an_idle_host_and_a_busy_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four boots of equal samples are well, and the figure is in the line."""
    detail, wrong = steps.seal(bench(tmp_path, monkeypatch, {"costs": {"publish_qos1": 12408}}))
    assert not wrong
    assert "12,408 instructions" in detail


@pytest.mark.slow
def test_a_random_number_in_a_sealed_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the samples that are not there nor the consoles pass, on an idle host already."""
    monkeypatch.setattr(steps, "busy_cores", lambda: nullcontext(0))
    noisy = bench(tmp_path, monkeypatch, {"costs": {"publish_qos1": 12408}, "noise": True})
    _detail, wrong = steps.seal(noisy)
    assert {"samples", "consoles", "exit code, idle", "exit code, busy"} <= set(wrong)


def ended(folder: Path, *entries: Mapping[str, object], status: int = 3) -> Ended:
    folder.mkdir()
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries))
    return Ended(status, "last words\n", folder)


LOST = {"type": "fault", "board": "e1", "case_id": "publish/count=1", "owner": "rig"}
LOST |= {"sentence": "The console of board e1 was lost. Log: x."}
OTHER = {"type": "record", "board": "e2"}


def test_a_fault_is_well_where_its_board_is_named_and_the_other_one_measured(tmp_path: Path) -> None:
    """The line quotes the sentence without its log, which is gone when the transcript is read."""
    detail, wrong = steps.judge_fault(ended(tmp_path / "run", LOST, OTHER), "e1", DISCONNECT)
    assert not wrong
    assert detail.startswith("exit 3, owner rig: ")
    assert "board e1 was lost.”; e2 " in detail


def test_a_board_that_was_not_flashed_has_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sentence is quoted as it is, and what it lacks is named."""
    failed = {**LOST, "case_id": "", "sentence": "flashing board e1 failed. Next: look."}
    done = ended(tmp_path / "run", failed, {**OTHER, "firmware_sha256": "x"})
    rack = bench(tmp_path, monkeypatch, {})
    monkeypatch.setattr(rack, "run", lambda *_: done)
    _detail, wrong = steps.measure_quick(rack)
    assert wrong["1 e1"] == "flashing board e1 failed."
    assert {"e1", "image", "esptool"} <= set(wrong)


@pytest.mark.parametrize(
    ("entries", "status", "wrong"),
    [
        ((LOST, OTHER), 1, {"exit code"}),
        ((LOST,), 3, {"e2"}),
        (({**LOST, "board": "e2"}, OTHER), 3, {"board"}),
        (({**LOST, "sentence": "Something."}, OTHER), 3, {"sentence"}),
        ((OTHER,), 0, {"exit code", "board", "sentence"}),
    ],
)
def test_a_fault_that_is_not_told_is_wrong(
    tmp_path: Path, entries: tuple[Mapping[str, object], ...], status: int, wrong: set[str]
) -> None:
    """Another exit code, another board, another sentence, a board that measured nothing."""
    done = ended(tmp_path / "run", *entries, status=status)
    detail, found = steps.judge_fault(done, "e1", DISCONNECT)
    assert set(found) == wrong
    assert ("e2 measured its case" in detail) == ("e2" not in wrong)


def test_a_step_that_is_stopped_is_a_failure_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1; a comparison that had no second image is named as not checked."""

    def stopped(*_: object) -> steps.Seen:
        raise RigError("the rack did not start.")

    for name in ("measure_quick", "inject", "compare_with_itself", "kill"):
        monkeypatch.setattr(steps, name, lambda *_: ("seen", {}))
    monkeypatch.setattr(steps, "seal", stopped)
    monkeypatch.setattr(panic, "provoke", lambda _bench: ("seen", {}))
    report = Report({})
    emulated_check.check(report, bench(tmp_path, monkeypatch, {}))
    said = capsys.readouterr().out
    assert report.exit_code() == 1
    assert "FAIL         sealed runs: " in said
    assert said.index("not checked  comparison: ") < said.index("ok           kill -9: seen")


def app_image(segments: Mapping[int, bytes]) -> bytes:
    """Return an image of segments by address, with its checksum and its SHA-256."""
    body = HEADER.pack(MAGIC, len(segments), 0, 0, 0, bytes(15) + b"\x01")
    body += b"".join(SEGMENT_HEADER.pack(at, len(data)) + data for at, data in segments.items())
    checksum = CHECKSUM_SEED
    for data in segments.values():
        checksum ^= xor_bytes(data)
    body = body.ljust(len(body) | 15, b"\0") + bytes([checksum])
    return body + hashlib.sha256(body).digest()


def test_code_is_replaced_and_the_image_sealed_again() -> None:
    """The boot loader's checks pass, and nothing else differs; an address outside is refused."""
    image = app_image({0x42000020: bytes(range(64)), 0x40380000: bytes(32)})
    whole = read_image(lambda at, length: image[at : at + length], 0, len(image))
    segment = whole.segments[0]
    changed = panic.replaced(image, segment.address + 4, panic.ILLEGAL)
    again = read_image(lambda at, length: changed[at : at + length], 0, len(changed))
    assert again.segments[0].data == segment.data[:4] + panic.ILLEGAL + segment.data[8:]
    assert again.segments[1:] == whole.segments[1:]
    with pytest.raises(ConfigError, match="has nothing at 0x1"):
        panic.replaced(image, 1, panic.ILLEGAL)
    with pytest.raises(ImageError):
        panic.replaced(bytes(64), 0, panic.ILLEGAL)


def test_a_figure_that_is_equal_in_each_boot_is_told_apart_from_one_that_varies(tmp_path: Path) -> None:
    """With least and most, and by how much of the most; what is in one boot alone says nothing."""
    run = RunDirectory.create(tmp_path, run_info())
    run.keep(project_files(TOOL_THRESHOLDS), FOLDER)
    for boot, latency_ms in enumerate((10, 20)):
        run.append(publish_record(boot_index=boot, latency_ms=latency_ms))
    lines = told(read_measured(run.path))
    (latency,) = [line for line in lines if " publish_latency_p50_us " in line]
    (failed,) = [line for line in lines if " publish_failed_ratio " in line]
    assert latency.startswith("varies")
    assert re.search(r" ms +2 boots, by \d+\.\d{3}%$", latency)
    assert failed.startswith("equal")
    assert lines.index(latency) < lines.index(failed)
    assert lines[-1].endswith(" vary.")
