# SPDX-License-Identifier: Apache-2.0
"""A timeline of tasks: asked for in the rack file, written by the emulator, kept with the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image, app_image
from hil.boards.firmware.image import build_image_dir
from hil.boards.rack import load_rack
from hil.run.interfaces import Boot
from hil.run.lab_rig import LabRig
from hil.store import RunDirectory
from hil.virtual.air.profile import load_profile
from hil.virtual.emulator.drivers import check_board
from hil.virtual.rack_state import VirtualBoardSpec
from hil.virtual.virtual_rack import VirtualRack
from tests.virtual.test_emulator_drivers import rack as rack_file
from tests.virtual.virtual_board_rig import console

# it writes its trace when it ends, as it does its flash
PEER = """#!{python}
import signal, sys
from pathlib import Path

def ended(*_):
    if "--trace" in sys.argv:
        elf = Path(sys.argv[sys.argv.index("--elf") + 1]).read_text()
        goes_on = "--no-panic-intercept" in sys.argv
        Path(sys.argv[sys.argv.index("--trace") + 1]).write_text(f"{{elf}} {{goes_on}}")
    sys.exit(0)

if sys.argv[1:] == ["--version"]:
    sys.exit(print("esp-emu 0.45.0"))
signal.signal(signal.SIGINT, ended)
print("hello", "--trace" in sys.argv, "end", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualRack]:
    program = tmp_path / "bin" / "esp-emu"
    program.parent.mkdir()
    program.write_text(PEER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}:/usr/sbin:/sbin")
    board = VirtualBoardSpec(
        "e1", "esp32c6", "02:00:00:77:00:0e", kind="emulated", emulator="esp-emu", network="openeth"
    )
    running = VirtualRack.start(
        name="traced",
        state_dir=tmp_path / "state",
        boards=[board],
        profile=load_profile("perfect"),
        air_seed=1,
    )
    try:
        yield running
    finally:
        running.stop()


class Served:
    def __init__(self, rack: VirtualRack) -> None:
        self._port = rack.boards["e1"].port

    def url(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self._port}"


def start(rack: VirtualRack) -> str:
    """Reset the board; return what its firmware says first."""
    with console(Served(rack)) as monitor:  # type: ignore[arg-type]
        monitor.reset()
        monitor.expect("hello ")
        return monitor.expect(" end").decode()


@pytest.mark.slow
def test_a_boot_that_is_traced_leaves_its_timeline_and_the_next_is_not(
    rack: VirtualRack, tmp_path: Path
) -> None:
    """It is the last start's, whole because its emulator has ended; a panic does not end it."""
    elf, into = tmp_path / "app.elf", tmp_path / "run" / "trace" / "e1" / "0-01.timeline.json"
    elf.write_text("symbols")
    with rack.traced("e1", elf, into):
        assert [start(rack), start(rack)] == ["True end"] * 2
        assert not into.exists()
    assert into.read_text() == "symbols True"
    assert start(rack) == "False end"


def test_the_rack_file_asks_for_it_and_an_emulator_without_is_refused(tmp_path: Path) -> None:
    """Nothing is traced unasked; the way out names the emulator that has it."""
    path = rack_file(tmp_path, "esp32c3", "qemu")
    (board,) = load_rack(path).boards
    assert not board.trace
    path.write_text(path.read_text().replace("emulator:", "trace: true, emulator:"))
    (board,) = load_rack(path).boards
    with pytest.raises(ConfigError, match=r"rack\.yaml:6: board 'e1': qemu has no trace") as caught:
        check_board(board)
    assert "emulator: esp-emu" in caught.value.next_step
    path.write_text(path.read_text().replace("emulator: qemu", "emulator: esp-emu"))
    check_board(*load_rack(path).boards)
    text = path.read_text().replace("kind: emulated", "kind: virtual").replace("emulator: esp-emu, ", "")
    path.write_text(text.replace(",\n      network: {type: openeth}", ""))
    with pytest.raises(ConfigError, match="unknown key 'trace'"):
        load_rack(path)


class Network:
    """Takes what it is asked to trace."""

    def __init__(self) -> None:
        self.traced_boots: list[tuple[Path, Path]] = []

    def traced(self, _board: object, elf: Path, into: Path) -> Any:
        self.traced_boots.append((elf, into))
        return nullcontext()


def test_a_build_without_its_elf_is_measured_and_says_what_is_missing(tmp_path: Path) -> None:
    """Each boot has a file of its own below the run; without the ELF no emulator is asked."""
    path = rack_file(tmp_path, "esp32c3", "esp-emu")
    path.write_text(path.read_text().replace("emulator:", "trace: true, emulator:"))
    loaded = load_rack(path)
    build_image_dir(Path("/bin/true"), tmp_path / "build", chip="esp32c3", version="1")
    elf = app_image(tmp_path / "build").with_suffix(".elf").resolve()
    network, anything = Network(), Any
    rig = LabRig(
        loaded,
        RunDirectory(tmp_path),
        "r",
        {},
        network,
        anything,
        anything,
        tmp_path,  # type: ignore[arg-type]
    )
    elf.unlink(missing_ok=True)
    boot = Boot(Image("esp32c3"), "candidate", 3)
    with rig._traced(loaded.boards[0], boot, tmp_path / "build"):
        assert str(elf) in str(rig._timelines["e1"]["error"])
    elf.write_text("symbols")
    for _ in range(2):
        with rig._traced(loaded.boards[0], boot, tmp_path / "build"):
            pass
    folder = tmp_path / "trace" / "e1"
    assert network.traced_boots == [
        (elf, folder / "3-01.timeline.json"),
        (elf, folder / "3-02.timeline.json"),
    ]
    assert rig._timelines["e1"] == {"timeline": "trace/e1/3-02.timeline.json"}
