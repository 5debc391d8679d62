# SPDX-License-Identifier: Apache-2.0
"""An emulator is a driver: what each can do is said in one place, and asked before anything is started.

A timeline of tasks is asked for in the rack file, written by the emulator, kept with the run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.chips import CHIPS, MODELLED
from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT, TOOL_THRESHOLDS
from hil.boards.firmware.build_folder import Image, app_image
from hil.boards.firmware.image import build_image_dir
from hil.boards.rack import load_rack
from hil.run.interfaces import Boot
from hil.run.lab_rig import LabRig
from hil.run.plan.planning import make_plan
from hil.store import RunDirectory
from hil.thresholds import load_project
from hil.virtual.board import chips as virtual_chips
from hil.virtual.board.flash import NorFlash
from hil.virtual.emulator import esp_emu
from hil.virtual.emulator.driver import EmulatedConfig, Start
from hil.virtual.emulator.drivers import DRIVERS, check_board
from hil.virtual.rack_state import VirtualBoardSpec
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import rack_of
from tests.virtual import esp_emu_standin
from tests.virtual.test_emulated_rack import Served
from tests.virtual.virtual_board_rig import console

RACK = """\
schema: 1
name: e
host: {{interface: hil0, address: 10.77.0.1}}
access_point: {{type: virtual, profile: lab, ssid: lab}}
boards:
  - {{id: e1, kind: emulated, target: {target}, emulator: {emulator}, mac: "02:00:00:77:00:0e",
      network: {{type: {network}}}}}
"""
# what pytest-embedded calls a target; the variables that a user may set
NOT_A_DRIVER = {
    "fixtures/entry.py": '"qemu"',
    "fixtures/src/pytest_hil/duts.py": '"qemu"',  # pytest-embedded's services
    "hil/base/unread.py": "HIL_QEMU_",
}


def rack_file(folder: Path, target: str, emulator: str, network: str = "openeth") -> Path:
    path = folder / "rack.yaml"
    path.write_text(RACK.format(target=target, emulator=emulator, network=network))
    return path


def test_nothing_outside_names_an_emulator() -> None:
    """Another emulator is another module in its folder, and nothing else."""
    named = [
        f"{path}:{number}: {line.strip()}"
        for folder in ("hil", "fixtures", "reports")
        for found in sorted((PROJECT_ROOT / folder).rglob("*.py"))
        if not (path := found.relative_to(PROJECT_ROOT).as_posix()).startswith("hil/virtual/emulator/")
        for number, line in enumerate(found.read_text().splitlines(), start=1)
        if re.search(r"qemu|esp[-_]?emu", line, re.IGNORECASE) and NOT_A_DRIVER.get(path, "\n") not in line
    ]
    assert named == []


def test_chips_come_from_one_table() -> None:
    """No emulator and no virtual board has a chip that firmware cannot be built for."""
    assert {chip for driver in DRIVERS.values() for chip in driver.ABILITIES.chips} <= set(CHIPS)
    assert tuple(virtual_chips.CHIPS) == MODELLED


@pytest.mark.parametrize(
    ("target", "emulator", "network", "says", "way_out"),
    [
        ("esp32c3", "bochs", "openeth", "'bochs'", "qemu, esp-emu"),
        ("esp32c6", "qemu", "openeth", "qemu has no target esp32c6", "emulator: esp-emu"),
        ("esp32", "esp-emu", "openeth", "esp-emu has no target esp32", "emulator: qemu"),
        ("esp32c3", "qemu", "wifi", "qemu has no network wifi", "openeth or emulator: esp-emu"),
    ],
)
def test_what_an_emulator_lacks_is_said_with_the_line_and_the_way_out(
    tmp_path: Path, target: str, emulator: str, network: str, says: str, way_out: str
) -> None:
    """The plan says it, so before anything is built or started; others that can are named."""
    loaded = load_rack(rack_file(tmp_path, target, emulator, network))
    with pytest.raises(ConfigError, match=rf"rack\.yaml:6: .*{says}") as caught:
        check_board(loaded.boards[0])
    assert way_out in caught.value.next_step
    with pytest.raises(ConfigError, match=says):
        make_plan(loaded, load_project(TOOL_THRESHOLDS), selection="quick")


def test_wifi_needs_a_name_for_the_access_point_of_the_emulator(tmp_path: Path) -> None:
    """A virtual board finds any; a chip's own image joins the one that it is told, where it has Wi-Fi."""
    path = rack_file(tmp_path, "esp32c3", "esp-emu", "wifi")
    path.write_text(path.read_text().replace(", ssid: lab", ""))
    with pytest.raises(ConfigError, match=r"rack\.yaml:4: .*'e1' .* no name"):
        load_rack(path)
    with pytest.raises(ConfigError, match="esp32h2 has no Wi-Fi"):
        load_rack(rack_file(tmp_path, "esp32h2", "esp-emu", "wifi"))


def test_an_access_point_of_an_emulator_does_not_go_away(tmp_path: Path) -> None:
    """A case that takes it away is not run on Wi-Fi, and is over a cable as before."""
    reasons = {}
    for network in ("wifi", "openeth"):
        loaded = load_rack(rack_file(tmp_path, "esp32c3", "esp-emu", network))
        (board,) = make_plan(loaded, load_project(TOOL_THRESHOLDS), selection="nightly").boards
        omitted = [one for one in board.omitted if "access_point" in one.case.case_id]
        reasons[network] = {one.reason.split()[0] for one in omitted}
    assert reasons == {"wifi": {"cause=access_point"}, "openeth": set()}


@pytest.mark.parametrize(
    ("target", "emulator", "counts"),
    [("esp32c3", "qemu", True), ("esp32", "qemu", False), ("esp32c3", "esp-emu", False)],
)
def test_a_case_that_an_emulator_cannot_serve_is_not_run_and_says_why(
    tmp_path: Path, target: str, emulator: str, counts: bool
) -> None:
    """Instructions are counted where that is known to be repeatable; the other cases are measured."""
    loaded = load_rack(rack_file(tmp_path, target, emulator))
    plan = make_plan(loaded, load_project(TOOL_THRESHOLDS), selection="quick")
    omitted = [one.reason for one in plan.boards[0].omitted if one.case.bench == "cost"]
    assert bool(omitted) is not counts
    for word in ("instructions", emulator, target, "e1"):
        assert all(word in reason for reason in omitted)
    assert any(case.bench == "publish" for case in plan.boards[0].cases)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualRack]:
    program = esp_emu_standin.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}:/usr/sbin:/sbin")
    board = VirtualBoardSpec(
        "e1", "esp32c6", "02:00:00:77:00:0e", kind="emulated", emulator="esp-emu", network="openeth"
    )
    with rack_of([board], tmp_path / "state") as running:
        yield running


def boot(rack: VirtualRack) -> None:
    """Reset the board, and wait until its ROM prints."""
    with console(Served(rack.boards["e1"].port)) as monitor:  # type: ignore[arg-type]
        monitor.reset("ESP-ROM:esp32c6")


@pytest.mark.slow
def test_a_boot_that_is_traced_leaves_its_timeline_and_the_next_is_not(
    rack: VirtualRack, tmp_path: Path
) -> None:
    """The timeline is of the last start, and whole because its emulator has ended."""
    into = tmp_path / "run" / "trace" / "e1" / "0-01.timeline.json"
    with rack.traced("e1", Path("/bin/true"), into):
        for _ in range(2):
            boot(rack)
        assert not into.exists()
    assert json.loads(into.read_text())["traceEvents"]
    for _ in range(2):
        boot(rack)
    assert not list((tmp_path / "state").glob("*.timeline.json"))


def test_a_panic_does_not_end_a_chip_that_is_traced(tmp_path: Path) -> None:
    """An ELF file alone makes the emulator end there."""
    emulator = esp_emu.EspEmu(Path("esp-emu"), "0.45.0", "esp32c6")
    config = EmulatedConfig("e1", "esp32c6", bytes(6))
    plain = Start(config, NorFlash(tmp_path / "e1.flash", 1 << 20), tmp_path / "efuses", tmp_path / "log")
    traced = replace(plain, elf=Path("app.elf"))
    words, more = (esp_emu.command_line(emulator, start, tmp_path / "bin") for start in (plain, traced))
    trace = ["--trace", str(tmp_path / "e1.timeline.json"), "--elf", "app.elf", "--no-panic-intercept"]
    assert [word for word in more if word not in words] == trace


def test_the_rack_file_asks_for_it_and_an_emulator_without_is_refused(tmp_path: Path) -> None:
    """Nothing is traced unasked; the way out names the emulator that has it."""
    path = rack_file(tmp_path, "esp32c3", "qemu")
    (board,) = load_rack(path).boards
    assert not board.trace
    path.write_text(path.read_text().replace("emulator:", "trace: true, emulator:"))
    (board,) = load_rack(path).boards
    with pytest.raises(ConfigError, match=r"rack\.yaml:6: .*'e1': qemu has no trace") as caught:
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
    network: Any = Network()
    anything: Any = None
    rig = LabRig(loaded, RunDirectory(tmp_path), "r", {}, network, anything, anything, tmp_path)
    elf.unlink(missing_ok=True)
    boot = Boot(Image("esp32c3"), "candidate", 3)
    with rig._traced(loaded.boards[0], boot, tmp_path / "build"):
        assert str(elf) in str(rig._timelines["e1"]["error"])
    elf.write_text("symbols")
    for _ in range(2):
        with rig._traced(loaded.boards[0], boot, tmp_path / "build"):
            pass
    folder = tmp_path / "trace" / "e1"
    assert network.traced_boots == [(elf, folder / f"3-0{number}.timeline.json") for number in (1, 2)]
    assert rig._timelines["e1"] == {"timeline": "trace/e1/3-02.timeline.json"}
