# SPDX-License-Identifier: Apache-2.0
"""docs/start/your-suite.md from the wheels, in an empty home: what the page says is what runs."""

from __future__ import annotations

import email
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

import hil
from tests.lab import ROOT
from tests.suite.consoles import console
from tests.whole import installed
from tools.adopt import follow, steps

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "start" / "your-suite.md"
CONSOLE = [
    "Chip is ESP32", "MAC: 24:0a:c4:12:34:56", "I (200) wifi: start", "I (612) net: got ip after 412 ms",
    "app.c:12:test_queue:PASS", "-----------------------", "1 Tests 0 Failures 0 Ignored", "OK",
]  # fmt: skip
PIPX = """\
#!/bin/sh -e
[ "$1 $(basename "$2")" = "install $(basename "$2")" ] && [ -f "$2" ]
ln -s {hil} "$HOME/.local/bin/hil"
"""


def test_the_plugin_is_a_distribution_of_its_own() -> None:
    """Its wheel holds the plugin and the licence, has the tool's version, and asks for pytest alone."""
    archive = zipfile.ZipFile(installed.plugin_wheel())
    names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"pytest_hil", "pytest_esp_hil"}
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    (metadata,) = [name for name in names if name.endswith("METADATA")]
    fields = email.message_from_bytes(archive.read(metadata))
    assert fields["Version"] == hil.__version__
    assert fields.get_all("Requires-Dist") == ["pytest>=8"]


@pytest.mark.heavy
def test_the_page_is_followed_from_the_wheels(tmp_path: Path) -> None:
    """As ever without --hil; then a limit kept, one broken, one of a file, and a trend of three sessions."""
    home, suite = tmp_path / "home", tmp_path / "suite"
    binaries = home / ".local" / "bin"
    binaries.mkdir(parents=True)
    suite.mkdir()
    for built in (installed.wheel(), installed.plugin_wheel()):
        shutil.copy(built, suite)
    pipx = binaries / "pipx"
    pipx.write_text(PIPX.format(hil=installed.environment() / "bin" / "hil"))
    pipx.chmod(0o755)
    own = installed.suites_environment(tmp_path / "venv")
    env = installed.users_environment(home, binaries)
    with console(CONSOLE) as port:
        env |= {"PATH": f"{own}/bin:{env['PATH']}", "PIP_NO_INDEX": "1", "PORT": port}
        done = follow(steps(PAGE), suite, env)
    said = [one.said for one in done if one.step.text.startswith("pytest")]
    assert "hil" not in said[0].replace("esp-hil", "").replace(str(tmp_path), "")
    shown = re.search(r"^    (hil: .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    assert shown[1] in said[1]
    assert re.search("connect_ms 412 ms, .* 400 ms ✗", said[2])
    assert re.search("connect_ms 412 ms, .* 500 ms ✓", said[3])
    trend = json.loads((suite / "out" / "report" / "trend" / "trend.json").read_text(encoding="utf-8"))
    (series,) = [one for one in trend["series"] if one["metric"] == "connect_ms"]
    assert series["points"]["value"] == [412, 412, 412]
