# SPDX-License-Identifier: Apache-2.0
"""`hil compare`: which commit a working tree is set beside, what is built of it, and the run that follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import read_digests
from hil.boards.firmware.failure import read_failure
from hil.cli.app import run_command
from hil.run.base_build import Base, build_base, describe_tree, find_base, of_probes
from hil.thresholds import load
from hil.thresholds.types import Thresholds
from tests.boards.idf_stand_in import put_idf
from tests.boards.revision_rig import commit_all, git
from tests.lab import ROOT, own_environment, run

RUN_DEADLINE_S = 300.0

CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(pump)\n"
HIL_TOML = 'schema = 1\n[firmware]\nfolder = "."\ntargets = ["esp32"]\n'
MAIN_C = """\
#include <stdio.h>
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

void app_main(void) {
    for (unsigned seq = 1;; seq++) {
        vTaskDelay(5);
        printf("asked seq=%u\\n", seq);
        vTaskDelay(CONFIG_PUMP_WORK_TICKS);
        printf("done seq=%u\\n", seq);
    }
}
"""
KCONFIG = 'config PUMP_WORK_TICKS\n    int "Work"\n    default 5\n'
PROBE = """\
schema: 1
ready: {pattern: 'done seq=1$', within_s: 60}
between: {from: 'asked seq=(?P<key>\\d+)', to: 'done seq=(?P<key>\\d+)'}
"""
TEST = "def test_stroke(measure):\n    assert all(samples.rows() for samples in measure())\n"
THRESHOLDS = """\
schema: 1
bench: stroke
parameters:
  count:      {default: 20, min: 1, max: 500}
  warmup:     {default: 2, min: 0, max: 100}
  duration_s: {default: 30, min: 1, max: 60}
  timeout_ms: {default: 1000, min: 1, max: 60000}
outcome: {column: outcome, ok: 0, timeout: timeout_ms}
suites:
  pr: [{}]
  more: [{count: 30}]
metrics:
  stroke_us:
    {of: done_us - began_us, statistic: [p50, p95], clock: host, direction: lower, blocking: compared}
policy: {alpha: 0.01, min_samples: 10, on_undecided: neutral}
limits: []
compare:
  - {where: {metric: stroke_p50_us}, tolerance_ratio: 0.2, min_effect_ratio: 0.1, why: a pump's stroke}
"""
VIRTUAL_RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, seed: 1}
boards:
  - {id: b1, kind: virtual, target: esp32, power: {type: virtual}, mac: '02:00:00:77:01:01'}
"""
CHIP_RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: external, ssid: bench, psk_env: HIL_PSK}
boards:
  - {id: b1, kind: physical, target: esp32, power: {type: none}, serial: /dev/serial/by-id/one}
"""
# Builds as idf.py would: an image around any program, called after the source; an #error stops it.
IDF_PY = """
text = (Path("main/main.c") if Path("main/main.c").is_file() else Path("CMakeLists.txt")).read_text().strip()
if "#error" in text:
    sys.exit(f"{Path.cwd()}/main/main.c:1:2: error: {text}")
if "disk" in text:
    sys.exit(f"{Path.cwd()}/main/main.c:1:2: error: No space left on device")
make_image(folder, chip=defined["IDF_TARGET"], version=text[:31])
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a product and a probe of it, committed on its default branch."""
    folder = tmp_path / "pump"
    write(
        folder,
        {
            "CMakeLists.txt": CMAKE,
            "hil.toml": HIL_TOML,
            ".gitignore": "/out/\n__pycache__/\nsdkconfig\n",
            "sdkconfig.defaults": "CONFIG_FREERTOS_HZ=1000\n",
            "main/CMakeLists.txt": 'idf_component_register(SRCS "main.c")\n',
            "main/Kconfig.projbuild": KCONFIG,
            "main/main.c": MAIN_C,
            "hil/rack.yaml": VIRTUAL_RACK,
            "hil/benches/stroke.probe.yaml": PROBE,
            "hil/benches/test_stroke.py": TEST,
            "hil/thresholds/stroke.yaml": THRESHOLDS,
        },
    )
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit_all(folder)
    return folder


def hil(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**own_environment(), "PYTHONPATH": str(ROOT)}
    return run([sys.executable, "-P", "-m", "hil", *words], project, env=env, timeout_s=RUN_DEADLINE_S)


@pytest.fixture
def branched(tmp_path: Path) -> tuple[Path, str]:
    """A repository whose HEAD left main at a commit; both have gone on since."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    left = commit_all(folder)
    git(folder, "checkout", "--quiet", "-b", "mine")
    (folder / "mine").touch()
    commit_all(folder)
    git(folder, "checkout", "--quiet", "main")
    (folder / "others").touch()
    commit_all(folder)
    git(folder, "checkout", "--quiet", "mine")
    return folder, left


@pytest.mark.parametrize("branch", ["origin/trunk", "main", "master"])
def test_without_a_name_it_is_where_head_left_the_default_branch(
    branched: tuple[Path, str], branch: str
) -> None:
    """The remote's HEAD counts first, then main, then master; the sentence says which it was."""
    folder, left = branched
    if branch == "origin/trunk":
        git(folder, "update-ref", "refs/remotes/origin/trunk", left)
        git(folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    elif branch == "master":
        git(folder, "branch", "--move", "main", "master")
    found = find_base(folder, None)
    assert found.revision.commit == left
    assert str(found) == f"{left[:12]} (where HEAD left {branch})"


def test_a_named_commit_is_that_commit(branched: tuple[Path, str]) -> None:
    """A branch is its tip, and not where HEAD left it."""
    folder, left = branched
    tip = git(folder, "rev-parse", "main")
    assert tip != left
    assert str(find_base(folder, "main")) == f"{tip[:12]} (main)"
    with pytest.raises(ConfigError, match="'nothing' is not a commit"):
        find_base(folder, "nothing")


def test_the_working_tree_is_compared_with_head_where_only_it_differs(project: Path) -> None:
    """On the default branch: what is not committed is the change; without any there is nothing to compare."""
    with pytest.raises(ConfigError, match=r"there is nothing to compare.*Next: .*hil compare HEAD~1"):
        find_base(project, None)
    (project / "main" / "new.c").write_text("")
    head = git(project, "rev-parse", "HEAD")
    assert find_base(project, None).revision.commit == head
    assert describe_tree(project) == f"the working tree ({head[:12]} and 1 changed file)"


def test_where_there_is_no_default_a_commit_has_to_be_named(
    branched: tuple[Path, str], tmp_path: Path
) -> None:
    """No branch of that name, no common ancestor, no repository: each says so, and what to do."""
    folder, _left = branched
    git(folder, "branch", "--move", "main", "trunk")
    with pytest.raises(ConfigError, match=r"none of origin/HEAD, main, master.*hil compare REF"):
        find_base(folder, None)
    git(folder, "checkout", "--quiet", "--orphan", "main")
    commit_all(folder)
    git(folder, "checkout", "--quiet", "mine")
    with pytest.raises(ConfigError, match=r"HEAD and main .*common ancestor"):
        find_base(folder, None)
    (tmp_path / "plain").mkdir()
    with pytest.raises(ConfigError, match="is in no git checkout"):
        find_base(tmp_path / "plain", None)


def limits(tmp_path: Path, text: str = THRESHOLDS) -> dict[str, Thresholds]:
    """Return the probe's thresholds beside one of hil's own benches."""
    write(tmp_path, {"thresholds/stroke.yaml": text})
    return {
        "stroke": load("stroke", tmp_path / "thresholds"),
        "publish": load("publish", ROOT / "thresholds"),
    }


def test_of_a_suite_the_probes_are_measured(tmp_path: Path) -> None:
    """Benches of hil's own firmware are left out, by name: that firmware is no part of the project."""
    benches = limits(tmp_path)
    assert of_probes("pr", benches, {"stroke"}) == ("pr and stroke", ("publish",))
    assert of_probes("more", benches, {"stroke"}) == ("more", ())
    assert of_probes("pr or quick", benches, {"stroke"})[0] == "(pr or quick) and stroke"


@pytest.mark.parametrize(
    ("text", "probes", "suite", "way_out"),
    [
        (THRESHOLDS, {"stroke"}, "nightly", r"for probes: --suite pr \(stroke\); --suite more \(stroke\)"),
        (
            THRESHOLDS.replace("stroke_p50_us}", "stroke_p50_us, case: {count: 30}}"),
            {"stroke"}, "nightly", r"for probes: --suite more \(stroke\)",
        ),
        (
            THRESHOLDS.partition("compare:")[0],
            {"stroke"}, "nightly", r"in the suites more, pr, and no rule under 'compare:'",
        ),
        (THRESHOLDS, set(), "pr", r"write a probe: docs/start/measure-a-product\.md"),
    ],
)  # fmt: skip
def test_a_suite_without_probes_is_refused_with_those_that_compare(
    tmp_path: Path, text: str, probes: set[str], suite: str, way_out: str
) -> None:
    """The suites in which a rule under `compare:` is for some case of a probe, or that there is none."""
    with pytest.raises(ConfigError, match=rf"the suite '{suite}' selects no probe.*Next: .*{way_out}"):
        of_probes(suite, limits(tmp_path, text), probes)


@pytest.fixture
def chips(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project on a rack of chips, with a stand-in for ESP-IDF; what hil finds where it works is here."""
    put_idf(IDF_PY, tmp_path, monkeypatch)
    (project / "hil" / "rack.yaml").write_text(CHIP_RACK)
    (project / "main" / "main.c").write_text("first\n")
    commit_all(project)
    for module in ("hil.cli.compare", "hil.base.project", "hil.boards.firmware.build"):
        monkeypatch.setattr(f"{module}.PROJECT_ROOT", project)
    monkeypatch.setattr("hil.run.base_build.BUILD_ROOT", project / "out" / "firmware")
    own = (ROOT / "hil" / "benches", project / "hil" / "benches")
    monkeypatch.setattr("hil.run.campaign.BENCH_FOLDERS", own)
    monkeypatch.setattr("hil.cli.run.bench_folders", lambda: own)
    return project


def handed_over(project: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Return the options with which `hil compare` goes on as a run, in the place of doing it."""
    found: list[list[str]] = []

    def note(_program: str, argv: list[str], _env: dict[str, str]) -> None:
        found.append(argv)

    monkeypatch.setattr(os, "execve", note)
    assert run_command(["compare", *places(project), *words]) == 0
    return found[0]


def places(project: Path) -> list[str]:
    """Return the options that a command in the project's folder would find by itself."""
    found = ("--rack", project / "hil/rack.yaml", "--thresholds", project / "hil/thresholds")
    return [*map(str, found), "--out", str(project / "out")]


@pytest.mark.slow
def test_the_commit_is_built_and_the_run_goes_on_with_it(
    chips: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run gets its image as its base, and what was asked; the working tree is left to the run. An
    sdkconfig that git does not have is named: the base is built without it, so it looks like a change."""
    base = git(chips, "rev-parse", "HEAD")
    (chips / "sdkconfig").write_text("CONFIG_PUMP_WORK_TICKS=7\n")
    (chips / "main" / "main.c").write_text("second\n")
    argv = handed_over(chips, monkeypatch, "--board", "b1", "--budget", "3", "--no-report")
    said = capsys.readouterr().out
    assert f"Comparing the working tree ({base[:12]} and 1 changed file) with {base[:12]} (where" in said
    assert f"Warning: {chips / 'sdkconfig'} is not in git" in said
    folder = chips / "out" / "firmware" / "at" / f"base-{base[:12]}"
    for option in (f"--hil-base={folder}", "--hil-suite=pr and stroke", "--hil-board=b1", "--hil-budget=3.0"):
        assert option in argv
    assert "--hil-no-report" in argv
    assert not [word for word in argv if word.startswith(("--hil-no-base", "--hil-ref"))]
    digests = read_digests(folder / "esp32+product")
    assert (digests.commit, digests.dirty, digests.product) == (base, False, "pump")
    assert (chips / "main" / "main.c").read_text() == "second\n"


@pytest.mark.slow
@pytest.mark.parametrize(("text", "cause"), [("#error no pump", "sources"), ("disk", "unknown")])
def test_a_commit_that_is_not_built_is_told_to_the_run(
    chips: Path, monkeypatch: pytest.MonkeyPatch, text: str, cause: str
) -> None:
    """As the workflow of pull requests does: whether its sources do not build, or something else failed."""
    (chips / "main" / "main.c").write_text(text)
    bad = commit_all(chips)
    (chips / "main" / "main.c").write_text("mended\n")
    argv = handed_over(chips, monkeypatch, bad, "--budget", "3")
    (why,) = (word.partition("=")[2] for word in argv if word.startswith("--hil-no-base-because="))
    assert read_failure(Path(why))[0] == cause
    assert not [word for word in argv if word.startswith(("--hil-base=", "--hil-budget"))]
    again = handed_over(chips, monkeypatch, f"{bad}~1")
    assert not [word for word in again if word.startswith("--hil-no-base-because")]


def test_hils_own_firmware_is_measured_by_the_benches_of_the_working_tree(
    chips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a project: the commit's product under the ruler that lies here, as --ruler-of . has it."""
    tool = tmp_path / "tool"
    bench = tool / "firmware" / "components" / "benches" / "echo.c"
    write(tool, {"firmware/CMakeLists.txt": "project(hil-firmware)\n"})
    write(bench.parent, {"echo.c": "then\n"})
    git(tool, "init", "--quiet")
    then = commit_all(tool)
    bench.write_text("now\n")
    monkeypatch.setattr("hil.boards.firmware.build.PROJECT_ROOT", tool)
    del chips
    base, image = Base(find_base(tool, "HEAD").revision, "HEAD"), Image("esp32")
    folder = build_base([image], base, tool, None, lambda _sentence: None)
    digests = read_digests(folder / "esp32")
    assert (digests.commit, digests.product) == (then, "")
    assert digests.ruler
    assert (digests.ruler.dirty, digests.ruler.moved) == (True, ("benches",))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("HEAD", "--suite", "nightly"), "selects no probe"),
        (("HEAD", "--suite", "fancy"), "fancy"),
        (("HEAD", "--budget", "0"), "minutes above 0"),
        (("HEAD", "--board", "b9"), "no board 'b9'"),
        (("elsewhere",), "'elsewhere' is"),
        ((), "nothing to compare"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_is_built(
    chips: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    """Exit 2, and no build is there."""
    assert run_command(["compare", *places(chips), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (chips / "out" / "firmware").exists()


@pytest.mark.heavy
@pytest.mark.slow
def test_a_slower_product_is_found_with_one_command(project: Path) -> None:
    """Two commits of a product, the second five times as slow: exit 1, and the run says which they were."""
    base = git(project, "rev-parse", "HEAD")
    git(project, "checkout", "--quiet", "-b", "slower")
    (project / "sdkconfig.defaults").write_text("CONFIG_FREERTOS_HZ=1000\nCONFIG_PUMP_WORK_TICKS=25\n")
    head = commit_all(project)
    done = hil(project, "compare", "--no-report")
    assert done.returncode == 1, done.stdout
    assert f"Comparing the working tree ({head[:12]}) with {base[:12]} (where HEAD left main)" in done.stdout
    assert "stroke p50" in done.stdout
    run = project / "out" / "latest"
    info = json.loads((run / "run.json").read_text())
    compared = info["compared"]["firmware"]["virtual-esp32+product"]
    assert (compared["commit"], compared["dirty"]) == (base, False)
    entries = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    measured = {one["role"]: one["firmware_sha256"] for one in entries if one["type"] == "record"}
    assert measured["base"] == compared["sha256"] != measured["candidate"]
    assert git(project, "status", "--porcelain") == ""

    # what no change touches is the same, and nothing is measured of it
    shutil.rmtree(project / "out" / "history", ignore_errors=True)
    same = hil(project, "compare", "HEAD", "--no-report")
    assert "byte for byte; " in same.stdout, same.stdout
