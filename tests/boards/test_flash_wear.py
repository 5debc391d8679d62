# SPDX-License-Identifier: Apache-2.0
"""How often a board's flash was erased: counted whoever writes, kept, and shown where it matters."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards import lease
from hil.boards.flash import Wear, WearCounter, read_wear
from hil.boards.flash.wear import SECTOR_CYCLES
from hil.boards.lease import kept_dir
from hil.boards.rack import Board, Power, load_rack
from tests.virtual.virtual_board_rig import REPOSITORY, python

pytestmark = pytest.mark.slow

BOARD = Board("b1", "virtual", "esp32", "/dev/null", Power("none"), mac="02:00:00:77:01:01")
RACK = """\
schema: 1
name: counted
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, seed: 1}
boards:
  - {id: b1, kind: virtual, target: esp32, power: {type: virtual},
     serial: 'fastrfc2217://127.0.0.1:47199', mac: '02:00:00:77:01:01'}
"""


def test_erases_are_counted_by_board_and_sector(tmp_path: Path) -> None:
    """A flash erases many sectors once; a switch erases one, which is counted by its own."""
    counter = WearCounter(tmp_path)
    counter.count(BOARD, range(0x1000, 0x9000, 0x1000))
    counter.count(BOARD, [0xD000])
    counter.count(BOARD, [0xE000])
    counter.count(BOARD, [0xD000])
    wear = read_wear(tmp_path, BOARD)
    assert wear is not None
    assert (wear.flashes, wear.sectors, wear.switched) == (1, 11, {"0xd000": 2, "0xe000": 1})
    assert wear.most == 3


def test_the_count_stays_with_the_chip(tmp_path: Path) -> None:
    """A board that is called otherwise keeps its count by its MAC; without one its id has to do."""
    WearCounter(tmp_path).count(BOARD, [0xD000])
    assert read_wear(tmp_path, replace(BOARD, id="other", mac=BOARD.mac.upper())) is not None
    assert read_wear(tmp_path, replace(BOARD, mac="")) is None


def test_several_writers_lose_no_count(tmp_path: Path) -> None:
    """Threads and processes that count at once add up."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.boards.test_flash_wear import BOARD\n"
        "from hil.boards.flash import WearCounter\n"
        "for _ in range(20): WearCounter(Path(sys.argv[1])).count(BOARD, [0xd000])\n"
    )
    argv = [sys.executable, "-c", program, str(tmp_path)]
    others = [subprocess.Popen(argv, cwd=REPOSITORY) for _ in range(2)]
    own = [threading.Thread(target=WearCounter(tmp_path).count, args=(BOARD, [0xE000])) for _ in range(20)]
    for thread in own:
        thread.start()
    for thread in own:
        thread.join()
    assert [other.wait(timeout=60) for other in others] == [0, 0]
    wear = read_wear(tmp_path, BOARD)
    assert wear is not None
    assert wear.switched == {"0xd000": 40, "0xe000": 20}


def test_a_damaged_count_begins_anew(tmp_path: Path) -> None:
    """What is no record is none; counting goes on from today."""
    WearCounter(tmp_path).count(BOARD, [0xD000])
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"{" * 600)
    assert read_wear(tmp_path, BOARD) is None
    WearCounter(tmp_path).count(BOARD, [0xD000])
    wear = read_wear(tmp_path, BOARD)
    assert wear is not None
    assert wear.sectors == 1


def test_the_count_of_a_physical_rack_outlives_a_reboot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is where no reboot empties it, for all users of the host; a virtual rack's is beside its locks.

    Where that folder can be neither made nor used, it is beside the locks, too.
    """
    locks = tmp_path / "run"
    virtual = load_rack(REPOSITORY / "hil" / "racks" / "virtual.yaml")
    physical = load_rack(REPOSITORY / "hil" / "racks" / "lab-example.yaml")
    assert (virtual.is_virtual, physical.is_virtual) == (True, False)
    monkeypatch.setattr(lease, "KEPT_DIR", tmp_path / "lib" / "hil")
    assert kept_dir(physical, locks) == locks
    (tmp_path / "lib").mkdir()
    folder = kept_dir(physical, locks)
    assert folder == tmp_path / "lib" / "hil" / physical.name
    WearCounter(folder).count(BOARD, [0xD000])
    assert [path.stat().st_mode & 0o7777 for path in (folder, folder.parent)] == [0o1777, 0o1777]
    assert kept_dir(physical, locks) == folder
    monkeypatch.setattr(os, "access", lambda *_words: False)  # of another user, who looks at the same list
    folder.mkdir(parents=True, exist_ok=True)
    assert kept_dir(physical, locks) == folder
    assert kept_dir(virtual, locks) == locks


@pytest.mark.parametrize("share", [0.49, 0.51])
def test_a_worn_flash_is_told(tmp_path: Path, share: float) -> None:
    """`hil board list` shows the count; from half of the promised cycles on it says what to do."""
    rack = tmp_path / "rack.yaml"
    rack.write_text(RACK)
    out = tmp_path / "out"
    erases = int(share * SECTOR_CYCLES)
    counter = WearCounter(out / "lock" / "counted")
    counter.count(BOARD, [0xD000])
    (path,) = (out / "lock" / "counted").iterdir()
    path.write_text(path.read_text().replace('"0xd000": 1', f'"0xd000": {erases}'))
    done = python("-m", "hil", "board", "list", "--rack", str(rack), "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert f"switched {erases:,} times" in done.stdout
    assert ("replace the module" in done.stdout) == (share > 0.5)


def test_the_words_of_a_count() -> None:
    """One of something is once."""
    assert Wear("2026-11-20", 1, 196, {"0xd000": 1}).describe() == (
        "flashed once, switched once, 196 sectors erased since 2026-11-20"
    )
