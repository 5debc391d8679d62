# SPDX-License-Identifier: Apache-2.0
"""An emulator is a driver: what each can do is said in one place, and asked before anything is started."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hil.base.chips import CHIPS, MODELLED
from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT, TOOL_THRESHOLDS
from hil.boards.rack import load_rack
from hil.run.plan.planning import make_plan
from hil.thresholds import load_project
from hil.virtual.board import chips as virtual_chips
from hil.virtual.emulator.drivers import DRIVERS, check_board

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


def rack(folder: Path, target: str, emulator: str, network: str = "openeth") -> Path:
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
    loaded = load_rack(rack(tmp_path, target, emulator, network))
    with pytest.raises(ConfigError, match=rf"rack\.yaml:6: .*{says}") as caught:
        check_board(loaded.boards[0])
    assert way_out in caught.value.next_step
    with pytest.raises(ConfigError, match=says):
        make_plan(loaded, load_project(TOOL_THRESHOLDS), selection="quick")


def test_wifi_needs_a_name_for_the_access_point_of_the_emulator(tmp_path: Path) -> None:
    """A virtual board finds any; a chip's own image joins the one that it is told, where it has Wi-Fi."""
    path = rack(tmp_path, "esp32c3", "esp-emu", "wifi")
    path.write_text(path.read_text().replace(", ssid: lab", ""))
    with pytest.raises(ConfigError, match=r"rack\.yaml:4: .*'e1' .* no name"):
        load_rack(path)
    with pytest.raises(ConfigError, match="esp32h2 has no Wi-Fi"):
        load_rack(rack(tmp_path, "esp32h2", "esp-emu", "wifi"))


def test_an_access_point_of_an_emulator_does_not_go_away(tmp_path: Path) -> None:
    """A case that takes it away is not run on Wi-Fi, and is over a cable as before."""
    reasons = {}
    for network in ("wifi", "openeth"):
        loaded = load_rack(rack(tmp_path, "esp32c3", "esp-emu", network))
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
    loaded = load_rack(rack(tmp_path, target, emulator))
    plan = make_plan(loaded, load_project(TOOL_THRESHOLDS), selection="quick")
    omitted = [one.reason for one in plan.boards[0].omitted if one.case.bench == "cost"]
    assert bool(omitted) is not counts
    for word in ("instructions", emulator, target, "e1"):
        assert all(word in reason for reason in omitted)
    assert any(case.bench == "publish" for case in plan.boards[0].cases)
