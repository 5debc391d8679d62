# SPDX-License-Identifier: Apache-2.0
"""The plugin with the oldest and the newest pytest, pytest-embedded and esptool of the package index."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hil.suite.facts import SuiteSession, read_sessions
from tests.lab import own_environment
from tests.suite.consoles import build_folder, console
from tests.whole import installed

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

VERSIONS: Mapping[str, Sequence[str]] = {
    "oldest": (
        "pytest==8.0.*",
        *(f"pytest-embedded{part}==1.16.*" for part in ("", "-serial-esp", "-idf", "-qemu")),
        "esptool<5",
        "pytest-xdist",
    ),
    "newest": (
        "pytest>=9",
        *(f"pytest-embedded{part}>=2.9" for part in ("", "-serial-esp", "-idf", "-qemu", "-espemu")),
        "esptool>=5",
        "pytest-xdist",
    ),
}
LINES = ["Chip is ESP32", "MAC: 24:0a:c4:12:34:56", "I (200) wifi: start", "I (612) net: got ip after 412 ms"]
EMULATOR = "#!/bin/sh\nwhile :; do\n" + "".join(f"echo '{line}'\n" for line in LINES) + "sleep 0.1\ndone\n"
SUITE = """
def test_connect(dut, metric):
    dut.expect("wifi: start")
    metric("connect_ms", int(dut.expect(r"got ip after (\\d+) ms").group(1)), limit=800)
"""
LOGGED = """
def test_logged(dut, log_metric):
    log_metric("boot_time", 3.25, unit="s")
"""


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """An environment with these versions and the plugin's wheel; pip resolves them together."""
    folder = tmp_path_factory.mktemp(request.param)
    venv.create(folder, with_pip=False, symlinks=True)
    wanted = [*VERSIONS[request.param], str(installed.plugin_wheel())]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return request.param, folder / "bin" / "python"


def session(python: Path, folder: Path, *arguments: str | Path) -> SuiteSession:
    """Return what a suite's session wrote that passed."""
    options = ["-q", "-p", "no:cacheprovider", "--hil", "--hil-file", "f.jsonl"]
    argv = [python, "-m", "pytest", *options, *arguments]
    done = subprocess.run(
        argv, cwd=folder, env=own_environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = read_sessions(sorted(folder.glob("f*.jsonl"))[:1])
    return found


def test_every_version_gives_the_same_values(python: tuple[str, Path], tmp_path: Path) -> None:
    """A serial board, its MAC and image; an emulated one; under xdist; log_metric where there is one."""
    name, program = python
    (tmp_path / "test_wifi.py").write_text(SUITE + (LOGGED if name == "newest" else ""), encoding="utf-8")
    emulator = tmp_path / "emulator"
    emulator.write_text(EMULATOR)
    emulator.chmod(0o755)
    build = build_folder(tmp_path)
    image = build / "app.bin"
    with console(LINES) as port:
        serial = ("--embedded-services", "serial", "--port", port, "--build-dir", build)
        found = session(program, tmp_path, *serial)
    wanted = {"connect_ms": 412.0} | ({"boot_time": 3.25} if name == "newest" else {})
    assert {one.fact.name: one.fact.value for one in found.values} == wanted
    assert {(one.board.board, one.board.kind) for one in found.values} == {("board-123456", "physical")}
    assert all(one.board.image_sha256 for one in found.values)
    qemu = ("--embedded-services", "qemu", "--qemu-prog-path", emulator, "--qemu-image-path", image)
    found = session(program, tmp_path, *qemu, "-k", "connect")
    assert [(one.board.kind, one.fact.value) for one in found.values] == [("emulated", 412.0)]
    if name == "newest":
        espemu = ("--embedded-services", "idf,espemu", "--espemu-prog-path", emulator, "--build-dir", build)
        found = session(program, tmp_path, *espemu, "--espemu-image-path", image, "-k", "connect")
        assert [(one.board.board, one.fact.value) for one in found.values] == [("esp32c3-emulated", 412.0)]
    (tmp_path / "f.jsonl").unlink()
    (tmp_path / "test_wifi.py").write_text("def test_it(metric):\n    metric('a_ms', 1)\n", encoding="utf-8")
    found = session(program, tmp_path, "-n", "1")
    assert [(one.fact.name, one.board.board) for one in found.values] == [("a_ms", "host")]
    assert found.session.worker == "gw0"
