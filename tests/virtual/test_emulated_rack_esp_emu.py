# SPDX-License-Identifier: Apache-2.0
"""A rack of two emulators, from its file to its end: a chip in QEMU, two in esp-emu; stand-ins play both."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hil.boards.firmware import image
from hil.boards.rack import load_rack
from hil.virtual.air.profile import load_profile
from hil.virtual.emulator.drivers import emulators_of
from hil.virtual.virtual_rack import VirtualRack, start_virtual_rack
from tests.boards import rack_tools
from tests.virtual import stand_in_qemu, test_emulator_esp_emu
from tests.virtual.test_emulated_rack import Served
from tests.virtual.virtual_board_rig import (
    Console,
    console,
    flash_files,
    is_alive,
    run_esptool,
    wait_until,
)

pytestmark = pytest.mark.slow

CHIPS = {"q1": "esp32c3", "e6": "esp32c6", "e3": "esp32s3"}
RACK = """\
schema: 1
name: e
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, ssid: lab, password: eight or more}
boards:
  - {id: q1, kind: emulated, target: esp32c3, emulator: qemu, mac: "02:00:00:77:00:01"}
  - {id: e6, kind: emulated, target: esp32c6, emulator: esp-emu, mac: "02:00:00:77:00:02"}
  - {id: e3, kind: emulated, target: esp32s3, emulator: esp-emu, mac: "02:00:00:77:00:03",
      network: {type: wifi}}
"""
Running = Callable[[], VirtualRack]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Start the rack of RACK, anew with the same flash each time."""
    program = test_emulator_esp_emu.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}:/usr/sbin:/sbin")
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(stand_in_qemu.install(tmp_path / "bin")))
    path = tmp_path / "rack.yaml"
    path.write_text(RACK)
    rack = load_rack(path)
    assert emulators_of(rack.boards) == [("esp-emu", "esp32c6"), ("esp-emu", "esp32s3"), ("qemu", "esp32c3")]
    return lambda: start_virtual_rack(
        rack, rack.boards, load_profile("perfect"), tmp_path, tmp_path / "state"
    )


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A build for each chip; of an ESP32-C6, which no virtual board is, like an ESP32-C3's."""
    layout = dataclasses.replace(image.layout_of("esp32c3"), chip="esp32c6", min_revision=0)
    monkeypatch.setitem(image._LAYOUTS, "esp32c6", layout)
    folders = {board: tmp_path / f"build-{chip}" for board, chip in CHIPS.items()}
    for board, folder in folders.items():
        image.build_image_dir(Path("/bin/true"), folder, chip=CHIPS[board], version="1")
    return folders


@contextmanager
def monitor_of(rack: VirtualRack, board: str) -> Iterator[Console]:
    with console(Served(rack.boards[board].port)) as monitor:  # type: ignore[arg-type]
        yield monitor


def hello(monitor: Console) -> str:
    """Reset the board; return what its program says first."""
    monitor.reset("hello from")
    return monitor.expect("\n").decode()


def keep(rack: VirtualRack, board: str, word: str) -> None:
    with monitor_of(rack, board) as monitor:
        monitor.write(f"keep {word}")
        monitor.expect(f"done {word}")


def test_a_rack_of_two_emulators_from_its_file_to_its_end(start: Running, builds: dict[str, Path]) -> None:
    """Each board is flashed by esptool and runs; a fault of a board is that board's; a rack that is stopped
    has kept what was written, and kill -9 leaves no process, and the flash of the last start."""
    rack = start()
    try:
        for board, chip in CHIPS.items():
            files = [word for at, file in flash_files(builds[board]).items() for word in (hex(at), str(file))]
            url = Served(rack.boards[board].port).url("fastrfc2217")
            status, said = run_esptool("--port", url, "--chip", chip, "write-flash", *files)
            assert status == 0, said
        for number, board in enumerate(CHIPS, start=1):
            with monitor_of(rack, board) as monitor:
                assert f"02:00:00:77:00:0{number}" in hello(monitor)
        rack.board_control("e6").fault("silent")
        keep(rack, "e3", "one")
        with monitor_of(rack, "e3") as monitor:
            rack.board_control("e3").fault("brownout", 1)
            monitor.expect("kept one")
        rack.board_control("e6").clear()
        keep(rack, "e6", "one")
    finally:
        rack.stop()
    rack = start()
    try:
        for board in ("e6", "e3"):
            with monitor_of(rack, board) as monitor:
                assert "kept one" in hello(monitor)
            keep(rack, board, "two")
        inside = rack_tools.inner_namespace(rack_tools.unshare_pid(rack))
        members = rack_tools.members(inside)
        assert len(members) > len(CHIPS)
        assert len({rack.board_control(board).state()["emulator_pid"] for board in CHIPS}) == len(CHIPS)
        os.kill(rack_tools.unshare_pid(rack), signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, members)), "the end of every process")
    finally:
        rack.stop()
    rack = start()
    try:
        with monitor_of(rack, "e6") as monitor:
            assert "kept one" in hello(monitor)
    finally:
        rack.stop()
