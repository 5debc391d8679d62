# SPDX-License-Identifier: Apache-2.0
"""`hil run --emulator`: one build gets a board of its chip, without a rack file."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.image import build_image_dir
from hil.boards.rack import load_rack
from hil.cli.app import run_command
from hil.cli.emulated import in_emulator
from hil.run.options import RunOptions
from hil.virtual.emulator.drivers import check_board
from tests.cli.test_compare import HIL_TOML, write
from tests.host_builds import build_product
from tests.lab import own_environment, run
from tests.virtual import esp_emu_standin
from tools.adopt import PAGE, steps

NODE = PROJECT_ROOT / "examples" / "sensor-node"


def options(folder: Path, chip: str, **sdkconfig: object) -> RunOptions:
    """Return the options of a run of a build, of which there is what the command reads."""
    build = folder / "build"
    (build / "config").mkdir(parents=True)
    (build / "flasher_args.json").write_text(json.dumps({"extra_esptool_args": {"chip": chip}}))
    (build / "config" / "sdkconfig.json").write_text(json.dumps(sdkconfig))
    return RunOptions(firmware=build, out=folder / "out")


@pytest.mark.parametrize(
    ("chip", "emulator", "sdkconfig", "network"),
    [
        ("esp32c6", "esp-emu", {}, "wifi"),
        ("esp32c6", "esp-emu", {"ETH_USE_OPENETH": True}, "openeth"),
        ("esp32h2", "esp-emu", {}, "openeth"),
        ("esp32", "qemu", {}, "openeth"),
    ],
)
def test_the_board_is_the_builds_chip_on_the_network_that_the_build_switches_on(
    tmp_path: Path, chip: str, emulator: str, sdkconfig: dict[str, object], network: str
) -> None:
    """The rack is called after both, so that their histories are apart; its access point is the usual one."""
    given = options(tmp_path, chip, **sdkconfig)
    rack = load_rack(in_emulator(given, emulator).rack)
    (board,) = rack.boards
    check_board(board)
    assert (board.id, board.chip, board.emulator, board.network.type) == (chip, chip, emulator, network)
    assert rack.name == f"{emulator}-{network}"
    assert rack.access_point.ssid == "hil"


def test_what_no_emulator_can_run_is_said_before_anything_is_started(tmp_path: Path) -> None:
    """A chip that it lacks, with those that it has; a rack beside it: neither is passed over."""
    given = options(tmp_path, "esp32")
    with pytest.raises(ConfigError, match=r"for esp32, .*esp-emu emulates esp32c3, esp32c5"):
        in_emulator(given, "esp-emu")
    with pytest.raises(ConfigError, match=r"--emulator with --rack lab\.yaml"):
        in_emulator(replace(given, rack=Path("lab.yaml")), "qemu")


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sensor node as the project of docs/start/adopt.md, with fewer readings, and the program of it."""
    folder = tmp_path / "node"
    write(folder, {step.path: step.text for step in steps(PAGE) if step.path})
    (folder / "hil.toml").write_text(HIL_TOML.replace("esp32", "esp32c3") + (folder / "hil.toml").read_text())
    limits = folder / "hil" / "thresholds" / "reading_ack.yaml"
    fewer = limits.read_text().replace("count: 60", "count: 6, warmup: 1")  # one each 200 ms, in six boots
    fewer = fewer.replace("min_samples: 50", "min_samples: 10")
    limits.write_text(fewer.replace("default: 150", "default: 20"))
    shutil.copy(NODE / "CMakeLists.txt", folder)
    built = build_product(NODE, target="virtual-esp32c3", build_root=tmp_path, say=lambda _line: None)
    elf = built / "sensor_node.elf"
    shutil.copy(elf, folder / "node.elf")
    monkeypatch.setattr("hil.boards.firmware.app_image.pack_elf", lambda elf: bytes(len(elf) // 4 * 4))
    for name in ("base", "build"):
        table = NODE / "partitions.csv"
        build_image_dir(elf, folder / name, chip="esp32c3", version=name, partitions_csv=table)
    return folder


@pytest.mark.slow
def test_a_products_build_is_flashed_measured_and_compared_in_turns(node: Path) -> None:
    """By its own probe, on Wi-Fi behind address translation; a stand-in plays the emulator, and the node's
    program its image. Its times are of no chip, so they are advice."""
    program = esp_emu_standin.install(node / "bin", program=node / "node.elf")
    words = ("run", "--firmware", "build", "--emulator", "esp-emu", "--base", "base", "--no-report")
    argv = [sys.executable, "-P", "-m", "hil", *words, "--suite", "pr and reading_ack"]
    path = f"{program.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
    env = {**own_environment(), "PYTHONPATH": str(PROJECT_ROOT), "PATH": path}
    done = run(argv, node, env=env, timeout_s=300)
    assert done.returncode == 0, done.stdout
    entries = [json.loads(line) for line in (node / "out/latest/records.jsonl").read_text().splitlines()]
    records = [one for one in entries if one["type"] == "record"]
    assert {one["role"] for one in records} == {"candidate", "base"}
    assert {(one["target"], one["rack"]) for one in records} == {("emulated-esp32c3", "esp-emu-wifi")}
    emulation = {"emulator": "esp-emu 0.45.0", "network": "wifi"}
    assert all(one["environment"]["emulation"] == emulation for one in records)
    said = (node / "out/latest/console/esp32c3.log").read_text()
    assert said.count("node.elf is played") >= len(records)
    assert {name for name in ("base", "build") if f"version={name} " in said} == {"base", "build"}
    verdict = json.loads((node / "out/latest/verdicts.json").read_text())
    assert "an emulated chip" in json.dumps(verdict)


def test_an_emulator_needs_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whose chip it takes; a rack file is the other way."""
    assert run_command(["run", "--emulator", "qemu", "--out", str(tmp_path)]) == ExitCode.CONFIG
    assert "add --firmware DIR" in capsys.readouterr().err
