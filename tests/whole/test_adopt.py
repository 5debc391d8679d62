# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/start that are followed word by word, from the wheel: what they say is what runs."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import hil
from tests.lab import ROOT
from tests.suite.consoles import console
from tests.whole import installed
from tools.adopt import PAGE, Step, WrongPageError, desk, follow, steps, table

PIPX = """\
#!/bin/sh -e
[ "$1" = install ] && [ -f "${{2%\\[*}}" ]
ln -s {hil} "$HOME/.local/bin/hil"
"""


def put_pipx(folder: Path) -> None:
    """Have a `pipx` that installs what hil's own wheel would, where that wheel is there."""
    program = folder / "pipx"
    program.write_text(PIPX.format(hil=installed.environment() / "bin" / "hil"))
    program.chmod(0o755)


def test_the_page_is_a_list_of_steps() -> None:
    """Installing, a project, its network, a probe with test and limits, a run, a comparison."""
    found = [step.path or " ".join(step.words.split()[:2]) for step in steps()]
    assert found == [
        "pipx install",
        "hil doctor",
        "cp -r",
        "hil init",
        "hil build",
        "hil.toml",
        "hil/benches/reading_ack.probe.yaml",
        "hil/benches/test_reading_ack.py",
        "hil/thresholds/reading_ack.yaml",
        "hil run",
        "git add",
        "echo CONFIG_NODE_SLOW_PUBLISH=20000",
        "hil compare",
    ]


@pytest.mark.parametrize(
    "line", ["false", "true # exit status 1: REGRESSED", "cd nowhere # the folder", "exit 3 # exit status 1"]
)
def test_a_page_that_says_what_is_not_so_fails(tmp_path: Path, line: str) -> None:
    """A command that ends otherwise than the page says is told with its page, heading and output."""
    with pytest.raises(WrongPageError, match=r"page\.md: 1\. Try it"):
        follow([Step(line, "page.md: 1. Try it")], tmp_path, dict(os.environ), lambda _line: None)


def test_a_block_without_its_file_is_refused(tmp_path: Path) -> None:
    """YAML of which no line above says where it belongs cannot be followed; a step names page and place."""
    page = tmp_path / "page.md"
    page.write_text("## The day\n\n### 1. Begin\n\n```sh\nfalse\n```\n")
    assert steps(page, "The day") == [Step("false", "page.md: 1. Begin")]
    page.write_text("## Ten minutes\n### 1. Write\nthis:\n\n```yaml\nschema: 1\n```\n")
    with pytest.raises(WrongPageError, match="of which file"):
        steps(page)


@pytest.mark.slow
@pytest.mark.heavy
def test_the_page_is_followed_from_the_wheel(tmp_path: Path) -> None:
    """Each step ends as it says: twelve limits kept on four boards, then the planted 20 ms are found."""
    shelf, env = desk(tmp_path)
    put_pipx(Path(env["HOME"]) / ".local" / "bin")
    done = follow(steps(PAGE), shelf, env)
    print(table(done))
    measured, compared = (next(one.said for one in done if one.step.text.startswith(words)) for words in (
        "hil run", "hil compare",
    ))  # fmt: skip
    assert "All 12 limits kept" in measured
    assert "Reading ack p50" in compared
    assert "REGRESSED" in compared
    assert (Path(env["HOME"]) / "node" / "out" / "report" / "index.html").is_file()


RACK_PAGE = ROOT / "docs" / "start" / "rack-in-a-day.md"
WITH_RESULTS = re.compile(r"^hil (run\b|exporter|(rack|board) \w+)")
REHEARSAL = "1. Rehearse"
AT_THE_RACK = re.compile(r"# at the rack$")


@pytest.fixture
def environment() -> dict[str, str]:
    """A user's, with hil on the PATH."""
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HIL_RACKS": str(ROOT / "hil" / "racks")}


def without_hardware(folder: Path) -> list[Step]:
    """Return the page's steps that need none; what they measure goes to the test's own folder."""
    return [
        step if step.path else replace(step, text=WITH_RESULTS.sub(rf"\g<0> --out {folder}/out", step.text))
        for step in steps(RACK_PAGE, "The day")
        if not AT_THE_RACK.search(step.text)
    ]


@pytest.mark.slow
def test_the_rack_page_is_followed(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command that needs no hardware ends as the page says; the rehearsal is the next test's."""
    wanted = [step for step in without_hardware(tmp_path) if REHEARSAL not in step.where]
    assert [step.path for step in wanted if step.path] == ["my-rack.yaml"]
    assert len([step for step in wanted if step.text.startswith("hil ")]) >= 6
    done = follow(wanted, tmp_path, environment, lambda _line: None)
    said = {one.step.words.split(" --")[0]: one.said for one in done}
    assert "esp32-1" in said["hil rack check"], "the check names the board that is not there"
    assert "labgrid" in said["hil exporter"]
    assert (tmp_path / "hil-runner" / "install.sh").is_file()


@pytest.mark.heavy
@pytest.mark.slow
def test_the_rack_page_is_rehearsed(tmp_path: Path, environment: dict[str, str]) -> None:
    """The virtual rack is checked, measures, and says how it fared, by the page's own commands."""
    wanted = [step for step in without_hardware(tmp_path) if REHEARSAL in step.where]
    said = [one.said for one in follow(wanted, tmp_path, environment, lambda _line: None)]
    assert len(said) == 3
    assert ": 1 run\n" in said[-1]


SUITE_PAGE = ROOT / "docs" / "start" / "your-suite.md"
CONSOLE = [
    "Chip is ESP32", "MAC: 24:0a:c4:12:34:56", "I (200) wifi: start", "I (612) net: got ip after 412 ms",
    "app.c:12:test_queue:PASS", "-----------------------", "1 Tests 0 Failures 0 Ignored", "OK",
]  # fmt: skip


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.heavy
def test_the_suites_page_is_followed_from_the_wheels(tmp_path: Path) -> None:
    """As ever without --hil; then a limit kept, one broken, one of a file, and a trend of three sessions."""
    home, suite = tmp_path / "home", tmp_path / "suite"
    binaries = home / ".local" / "bin"
    binaries.mkdir(parents=True)
    suite.mkdir()
    for built in (installed.wheel(), installed.plugin_wheel()):
        shutil.copy(built, suite)
    put_pipx(binaries)
    own = installed.suites_environment(tmp_path / "venv")
    env = installed.users_environment(home, binaries)
    with console(CONSOLE) as port:
        env |= {"PATH": f"{own}/bin:{env['PATH']}", "PIP_NO_INDEX": "1", "PORT": port}
        done = follow(steps(SUITE_PAGE), suite, env)
    said = [one.said for one in done if one.step.text.startswith("pytest")]
    assert "hil" not in said[0].replace("esp-hil", "").replace(str(tmp_path), "")
    shown = re.search(r"^    (hil: .*)$", SUITE_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    assert shown[1] in said[1]
    assert re.search("connect_ms 412 ms, .* 400 ms ✗", said[2])
    assert re.search("connect_ms 412 ms, .* 500 ms ✓", said[3])
    trend = json.loads((suite / "out" / "report" / "trend" / "trend.json").read_text(encoding="utf-8"))
    (series,) = [one for one in trend["series"] if one["metric"] == "connect_ms"]
    assert series["points"]["value"] == [412, 412, 412]
