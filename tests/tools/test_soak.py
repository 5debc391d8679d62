# SPDX-License-Identifier: Apache-2.0
"""The soak: what grows is found and named, what only warms up is not."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import RigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware import otadata
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.rack import Board, Power, load_rack
from tests.lab import Running, descendants, make_lab, run, wait_for
from tests.virtual.virtual_board_rig import (
    MAC,
    OTA_1,
    OTADATA,
    BoardProcess,
    flash_files,
    make_build,
    write_flash_file,
)
from tools.soak import Held, figure, growth, leave_update, made, on_virtual_rack, soak, update_leased

PARTS = {"hil-air": 20_000, "b1": 180_000}
HELD = Held(memory_kb=PARTS, descriptors=100, threads=20, processes=8, files=40, disk_kb=9000)


def samples(count: int, change: Callable[[int], dict[str, Any]]) -> list[Held]:
    return [replace(HELD, **change(number)) for number in range(count)]


def memory(b1_kb: int) -> dict[str, Any]:
    return {"memory_kb": {**PARTS, "b1": b1_kb}}


def test_what_stays_or_warms_up_does_not_grow() -> None:
    """A cache that fills in the first quarter, and a few pages more or less, are no leak. A small part that
    grows is named, though it is little of all."""
    assert growth(samples(40, lambda number: memory(180_000 + 37 * (number % 5)))) == {}
    assert growth(samples(40, lambda number: memory(100_000 + min(number, 9) * 10_000))) == {}
    assert growth(samples(3, lambda number: {"descriptors": number})) == {}  # too few to tell
    found = samples(40, lambda number: {"memory_kb": {**PARTS, "hil-air": 20_000 + 100 * number}})
    assert set(growth(found)) == {"memory_kb of hil-air"}


@pytest.mark.parametrize("name", ["descriptors", "threads", "files", "disk_kb"])
def test_what_grows_is_named(name: str) -> None:
    """A little with each run: what it was in the second quarter, and what in the last."""
    start = getattr(HELD, name)
    found = samples(40, lambda number: {name: start + number * max(1, start // 100)})
    assert set(growth(found)) == {name}
    table = figure(found, Counter({"0": 40}), 120.0)
    assert [aim.split(" grew ")[0] for aim in table.missed] == [name]


def test_a_run_that_failed_is_an_aim_missed() -> None:
    """However flat everything is."""
    statuses = itertools.cycle([0, 0, 3])
    found, outcomes = soak(lambda _number: next(statuses), lambda: HELD, 0.0)
    assert (len(found), outcomes) == (1, Counter({"0": 1}))
    assert figure([HELD] * 3, Counter({"0": 2, "3": 1}), 1.0).missed == ["1 runs ended with 3"]


def test_one_run_is_killed_one_measures_both_slots_and_two_find_an_update(tmp_path: Path) -> None:
    """Of ten: the killed one is no failure, unless it ends by itself before; the others' statuses count."""
    asked: list[Sequence[str]] = []
    updates: list[tuple[int, bool]] = []

    def start(*more: str) -> Running:
        asked.append(more)
        number = len(asked)
        script = f"echo run {number}; exit {number}"
        if number == 10:
            script = "echo 'b1 [0/2] flashing'; exec sleep 60"
        return Running(["sh", "-c", script], tmp_path / "run.txt", {"PATH": os.environ["PATH"]})

    def update(whole: bool) -> None:
        updates.append((len(asked), whole))

    kept = tmp_path / "kept"
    assert [made(start, number, update, kept) for number in range(10)] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    assert updates == [(2, False), (7, True)]
    assert [number for number, more in enumerate(asked) if more] == [5]
    assert asked[5] == ("--unchanged",)
    assert (kept / "run-2-exit-3.txt").read_text() == "run 3\n"  # what a failed run said is not lost
    assert len(list(kept.iterdir())) == 9
    assert made(start, 19, update) == 11  # it ended before it wrote


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_a_board_is_left_as_its_own_update_leaves_it(tmp_path: Path, *, whole: bool) -> None:
    """Half an image that nothing chooses; or a whole one that the boot loader has tried and given up."""
    build = make_build(tmp_path / "app")
    image = (build / "testapp.bin").read_bytes()
    flash = write_flash_file(tmp_path / "flash.bin", flash_files(build))

    def left() -> bytes:
        return flash.read_bytes()[OTADATA + otadata.SECTOR_BYTES :][: otadata.ENTRY_BYTES]

    with BoardProcess(tmp_path, flash=flash) as process:
        board = Board("b1", "virtual", "esp32", process.url(), Power("virtual"), where="rack.yaml:7")
        leave_update(board, build, tmp_path, whole=whole)
        given_up = otadata.pack(2, otadata.STATE_ABORTED)
        wait_for(lambda: left() == (given_up if whole else b"\xff" * otadata.ENTRY_BYTES), left().hex)
        process.wait_for(lambda state: state["app_partition"] == "ota_0")
    written = flash.read_bytes()[OTA_1:].rstrip(b"\xff")
    assert written == image if whole else len(image) // 2 - 4096 < len(written) <= len(image) // 2


@pytest.mark.slow
def test_an_update_leaves_a_board_to_whoever_holds_it(tmp_path: Path) -> None:
    """On a rack that others use, too: nothing is written into a board that somebody measures."""
    build, folder = make_build(tmp_path / "app"), tmp_path / "lab"
    flash = write_flash_file(tmp_path / "flash.bin", flash_files(build))
    folder.mkdir()

    def written() -> bytes:
        return flash.read_bytes()[OTA_1:].rstrip(b"\xff")

    with BoardProcess(tmp_path, flash=flash) as process:
        file = make_lab(folder, 1, ports=[process.port]).rack
        file.write_text(file.read_text().replace("02:00:00:77:01:01", MAC))
        rack = load_rack(file)
        with (
            lease_boards(lock_dir(rack, tmp_path), ["b1"], run_id="theirs"),
            pytest.raises(RigError, match="board b1 of rack lab is held by"),
        ):
            update_leased(rack, tmp_path, lambda _target: build, whole=False, wait_s=0.0)
        assert written() == b""
        update_leased(rack, tmp_path, lambda _target: build, whole=False, wait_s=0.0)
        assert written() != b""


def test_an_update_that_fails_is_counted_instead_of_its_run(tmp_path: Path) -> None:
    """A board that does not answer once does not end a soak of days."""

    def refuse(_whole: bool) -> None:
        raise RigError("board b1 does not answer.")

    def start(*_more: str) -> Running:
        raise AssertionError("nothing is measured")

    assert made(start, 2, refuse, tmp_path) == 3


@pytest.mark.slow
def test_a_rack_file_that_is_not_there_is_told_in_a_sentence() -> None:
    """And by the status of a configuration."""
    done = run([sys.executable, "-m", "tools.soak", "--rack", "missing.yaml"])
    assert done.returncode == 2
    assert done.stdout.startswith("soak: missing.yaml: ")


@pytest.mark.slow
def test_a_soak_that_is_terminated_leaves_nothing() -> None:
    """Its rack ends with it; the status is a signal's."""
    argv = [sys.executable, "-m", "tools.soak"]
    process = subprocess.Popen(argv, cwd=PROJECT_ROOT, stderr=subprocess.DEVNULL)
    wait_for(lambda: any("hil-air" in one.name for one in descendants(process.pid)), lambda: "no rack")
    parts = descendants(process.pid)
    process.terminate()
    assert process.wait(timeout=60) == 143
    assert [one.name for one in parts if one.alive()] == []


@pytest.mark.slow
def test_a_short_soak_of_two_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run on a rack that is kept up: it passes, and what the rack holds is counted."""
    monkeypatch.setattr(sys.modules[soak.__module__], "BOARDS", 2)
    table = on_virtual_rack(0.0, "quick")
    assert table.missed == []
    first = {row[0]: int(row[1].replace(",", "")) for row in table.rows}
    assert first["processes"] >= 6  # up, unshare, supervisor, air, two boards
    assert first["memory_kb"] > 10_000
    assert first["descriptors"] > 20
