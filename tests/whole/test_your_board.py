# SPDX-License-Identifier: Apache-2.0
"""The page on one board at a port: its commands, as they stand there, on a virtual board behind RFC 2217.

The board is behind a port as a chip is. ESP-IDF is a stand-in, whose images such a board runs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.boards.revision_rig import commit_all, git
from tests.cli.test_compare import CMAKE, HIL_TOML, KCONFIG, MAIN_C, PROBE, TEST, THRESHOLDS, write
from tests.host_builds import BUILDS
from tests.lab import ROOT, own_environment, write_suites
from tests.virtual.virtual_board_rig import BoardProcess, own_board

PAGE = ROOT / "docs" / "start" / "your-board.md"
COMMANDS = re.findall(r"^hil [^#\n]*[^#\s]", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
PORT = "/dev/ttyUSB0"  # as the page has it
PUMP = MAIN_C.replace(
    "    for", "    vTaskDelay(500);  // as a product boots: nothing is said at once\n    for", 1
)
PASSWORD = "correct horse battery"
DEADLINE_S = 600.0
ROLES = ("base", "candidate")
PUBLISH = "suites:\n  quick:\n    - {count: 60, warmup: 5, interval_us: 5000, payload_bytes: 128}\n\n"
IDF_PY = """\
#!{python}
import shutil, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from hil.boards.firmware.product.build import build_product
words, here = sys.argv[1:], Path.cwd()
(chip,) = [word.partition("=")[2] for word in words if word.startswith("-DIDF_TARGET=")]
own = (here / "components" / "agent").is_dir()
target = f"virtual-{{chip}}"
built = Path({firmware!r}) if own else build_product(here, target=target, build_root=Path({work!r}),
                                                          tree_root=Path({trees!r}))
shutil.copytree(built, words[words.index("-B") + 1], dirs_exist_ok=True)
"""


@pytest.fixture
def project(tmp_path: Path, virtual_firmware: Path) -> Path:
    """A product with a probe of its console, committed; its suites are short; idf.py is on PATH."""
    folder = tmp_path / "pump"
    (folder / "hil").mkdir(parents=True)
    write_suites(folder / "hil" / "thresholds", {"publish": PUBLISH})
    files = {
        "CMakeLists.txt": CMAKE,
        "hil.toml": HIL_TOML,
        ".gitignore": "/out/\n__pycache__/\nsdkconfig\n",
        "sdkconfig.defaults": "CONFIG_FREERTOS_HZ=1000\n",
        "main/CMakeLists.txt": 'idf_component_register(SRCS "main.c")\n',
        "main/Kconfig.projbuild": KCONFIG,
        "main/main.c": PUMP,
        "hil/benches/stroke.probe.yaml": PROBE,
        "hil/benches/test_stroke.py": TEST,
        "hil/thresholds/stroke.yaml": THRESHOLDS.replace("  more:", "  quick: [{}]\n  more:"),
    }
    write(folder, files)
    places = {"root": ROOT, "firmware": virtual_firmware, "work": tmp_path / "idf", "trees": BUILDS}
    words = {name: str(place) for name, place in places.items()}
    write(tmp_path, {"bin/idf.py": IDF_PY.format(python=sys.executable, **words)})
    (tmp_path / "bin" / "idf.py").chmod(0o755)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit_all(folder)
    return folder


@pytest.fixture
def board(tmp_path: Path) -> Iterator[BoardProcess]:
    with own_board(tmp_path) as process:
        yield process


def hil(
    project: Path, command: str, board: BoardProcess, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Type a command of the page in the project, at no terminal; the board's port takes the place of PORT."""
    above, own = project.parent, own_environment()
    path, config = f"{above / 'bin'}:{own['PATH']}", str(above / "config")
    environment = {**own, "PYTHONPATH": str(ROOT), "PATH": path, "XDG_CONFIG_HOME": config, **variables}
    words = command.replace(PORT, board.url("rfc2217")).split()[1:]
    return subprocess.run(
        [sys.executable, "-P", "-m", "hil", *words], cwd=project, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE_S, check=False,
        env=environment,
    )  # fmt: skip


def changed(project: Path) -> set[str]:
    """Return the files of the project that its last commit has not so, without what git ignores."""
    return set(git(project, "ls-files", "--others", "--modified", "--exclude-standard").split())


def stored(project: Path, name: str) -> Any:
    return json.loads((project / "out" / "latest" / name).read_text())


def test_the_page_has_two_commands_before_the_first_figures() -> None:
    """And no file that a person writes: each block of it is one to type."""
    assert [command.split()[1] for command in COMMANDS] == ["board", "run", "limit", "compare"]
    assert "```yaml" not in PAGE.read_text(encoding="utf-8").partition("hil limit")[0]


@pytest.mark.slow
def test_from_a_port_to_figures_and_a_limit(project: Path, board: BoardProcess) -> None:
    """No file by hand: the rack file and the limit are the commands', and the password is in neither."""
    scan, run, limit, _ = COMMANDS
    said = hil(project, f"{scan} {PORT}", board).stdout
    assert f"hil run --port {board.url('rfc2217')}" in said

    done = hil(project, run, board, HIL_WIFI_SSID="desk net", HIL_WIFI_PSK=PASSWORD)
    assert done.returncode == 0, done.stdout
    assert "hil limit METRIC --max VALUE" in " ".join(done.stdout.split())
    assert changed(project) == {"hil/rack.yaml"}
    figures = {item["metric"]: item for item in stored(project, "verdicts.json")["series"]}
    assert {"publish_latency_p95_us", "stroke_p50_us"} <= figures.keys()
    assert {(item["kind"], item["target"]) for item in figures.values()} == {("physical", "esp32")}
    below = (path for path in project.rglob("*") if path.is_file())
    assert [path for path in below if PASSWORD.encode() in path.read_bytes()] == []

    done = hil(project, limit, board)
    assert done.returncode == 0, done.stdout
    assert changed(project) == {"hil/rack.yaml", "hil/thresholds/publish.yaml"}
    again = hil(project, "hil gate out/latest --verbose", board)
    assert again.returncode == 0, again.stdout


@pytest.mark.slow
def test_a_probe_of_the_console_asks_for_no_network(project: Path, board: BoardProcess) -> None:
    """Neither name nor password is known, and there is no terminal to ask at: it measures all the same."""
    done = hil(project, f"hil run --port {PORT} --suite stroke --no-report", board)
    assert done.returncode == 0, done.stdout
    assert {item["metric"] for item in stored(project, "verdicts.json")["series"]} >= {"stroke_p50_us"}


@pytest.mark.heavy
@pytest.mark.slow
def test_a_slower_product_is_compared_at_a_port(project: Path, board: BoardProcess) -> None:
    """`hil compare` takes the rack file that the first run wrote, and boots both builds. A busy
    host may leave the change undecided."""
    assert hil(project, f"hil run --port {PORT} --suite stroke --no-report", board).returncode == 0
    main = project / "main" / "main.c"
    main.write_text(PUMP.replace("vTaskDelay(CONFIG", "vTaskDelay(3 * CONFIG"))
    done = hil(project, COMMANDS[-1], board)
    assert stored(project, "verdicts.json")["outcome"] in ("regressed", "undecided"), done.stdout
    lines = (project / "out" / "latest" / "records.jsonl").read_text().splitlines()
    records = [entry for entry in map(json.loads, lines) if entry["type"] == "record"]
    firmware = {role: {one["firmware_sha256"] for one in records if one["role"] == role} for role in ROLES}
    assert [len(found) for found in firmware.values()] == [1, 1]
    assert firmware["base"] != firmware["candidate"]
