# SPDX-License-Identifier: Apache-2.0
"""`hil init` in projects of others: what it finds, what it writes, what it leaves alone."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.base.paths import find_project
from hil.base.project import Project, read_project
from hil.boards.rack import load_rack
from hil.cli.init import command, find_firmware
from hil.probe.probe_file import check_parameters, read_probe
from hil.thresholds import load
from tests.ci.git_process import git
from tests.lab import ROOT

CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(product)\n"


def idf_project(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    return folder


TOOL = "example/hil@v1.2.3"


def init(folder: Path, *words: str) -> str:
    words = words or ("--workflow", TOOL)
    done = CliRunner().invoke(command, [str(folder), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_it_writes_what_can_be_read(tmp_path: Path) -> None:
    """Project, rack, probe and limits are valid as written; a line explains each file, and no other."""
    idf_project(tmp_path)
    (tmp_path / "sdkconfig.defaults.esp32s3").write_text("")
    (tmp_path / "sdkconfig").write_text('CONFIG_IDF_TARGET="esp32c3"\n')
    said = init(tmp_path)
    assert read_project(tmp_path) == Project(tmp_path, tmp_path, ("esp32s3", "esp32c3"), strict=False)
    assert load_rack(tmp_path / "hil" / "rack.yaml").is_virtual
    limits = load("boot_time", tmp_path / "hil" / "thresholds")
    assert limits.limits[0].expires > datetime.datetime.now(tz=datetime.UTC).date()
    probe = read_probe(tmp_path / "hil" / "benches" / "boot_time.probe.yaml")
    for cases in limits.suites.values():
        check_parameters(probe, cases[0].parameters, "boot_time.yaml")
    assert limits.suites.keys() == {"product", "pr"}
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert explained_in(said) == written - {"sdkconfig", "sdkconfig.defaults.esp32s3", "CMakeLists.txt"}


def explained_in(said: str) -> set[str]:
    """Return the files that the explanation of `hil init` names."""
    return {line.split()[0] for line in said.split("\n\n")[1].splitlines() if not line.startswith("hil ")}


@pytest.mark.parametrize("in_git", [True, False])
def test_git_does_not_see_runs(tmp_path: Path, *, in_git: bool) -> None:
    """A project without a .gitignore gets one; a file that is there is left, and the way out is said."""
    project = idf_project(tmp_path / "product")
    if in_git:
        git(project, "init", "--quiet")
    said = init(project)
    assert (project / ".gitignore").read_text() == "out/\n__pycache__/\n"
    assert "does not name out/" not in said + init(project)
    (project / ".gitignore").write_text("build/\n")
    said = init(project)
    assert (project / ".gitignore").read_text() == "build/\n"
    assert "Next: echo out/ >>.gitignore" in said
    assert ".gitignore" not in explained_in(said)


def test_a_repository_that_ignores_runs_needs_no_second_file(tmp_path: Path) -> None:
    """The .gitignore at the top of the repository counts for the project below it."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("out/\n")
    init(idf_project(tmp_path / "product"))
    assert not (tmp_path / "product" / ".gitignore").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A file that is there keeps its content, byte for byte, and is named; a second init changes nothing."""
    idf_project(tmp_path)
    workflow = tmp_path / ".github" / "workflows" / "hil.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("name: mine\n")
    assert re.search(r"^kept +.github/workflows/hil.yml", init(tmp_path), re.M)
    assert workflow.read_text() == "name: mine\n"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "wrote" not in init(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def workflow_of(top: Path) -> dict[str, Any]:
    text = (top / ".github" / "workflows" / "hil.yml").read_text()
    assert len(text.splitlines()) <= 15
    return dict(YAML(typ="safe").load(text))


def test_the_workflow_calls_the_tools_own(tmp_path: Path) -> None:
    """At most 15 lines, at the top of the repository, whichever folder of it the project is: it hands on
    inputs that measure.yml has, with that folder, and may do nothing but read the project."""
    git(tmp_path, "init", "--quiet")
    product = idf_project(tmp_path / "products" / "sensor: a #1")
    assert re.search(r"^wrote +../../.github/workflows/hil.yml", init(product), re.M)
    assert not (product / ".github").exists()
    workflow = workflow_of(tmp_path)
    (job,) = workflow["jobs"].values()
    assert job["uses"] == "example/hil/.github/workflows/measure.yml@v1.2.3"
    assert workflow["permissions"] == {}
    assert set(job["permissions"].values()) == {"read"}
    called = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "measure.yml")["on"]["workflow_call"]
    assert job["with"].keys() <= called["inputs"].keys()
    assert job["with"]["firmware-path"] == "products/sensor: a #1"


@pytest.mark.parametrize("told", ["", "master", "x,y"])
def test_the_workflow_is_for_the_default_branch(tmp_path: Path, told: str) -> None:
    """Pull requests for others would leave a verdict on their commit that is none against this one."""
    idf_project(tmp_path)
    git(tmp_path, "init", "--quiet")
    if told:
        git(tmp_path, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{told}")
    init(tmp_path)
    workflow = workflow_of(tmp_path)
    assert [job["with"]["firmware-path"] for job in workflow["jobs"].values()] == ["."]
    asked = workflow["on"]["pull_request"]
    assert asked["branches"] == [told if told == "master" else "main"]
    assert "edited" in asked["types"]


def test_what_knows_its_origin_needs_not_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed release calls the workflow of its own commit; one that knows no origin writes none, and no
    line explains it."""
    stamp = tmp_path / "build.json"
    monkeypatch.setattr("hil.cli.init.BUILD_STAMP", stamp)
    known = {"commit": "c0ffee" * 6 + "c0ff", "dirty": False, "repository": "example/hil"}
    for number, (facts, called) in enumerate(
        [
            (known, f"example/hil/.github/workflows/measure.yml@{known['commit']}"),
            ({**known, "dirty": True}, None),  # it is no commit that others could fetch
            ({**known, "repository": ""}, None),
            ({**known, "commit": ""}, None),
            ({}, None),
        ]
    ):
        stamp.write_text(json.dumps(facts))
        project = idf_project(tmp_path / str(number))
        said = init(project, "--workflow", "")
        if called:
            assert workflow_of(project)["jobs"]["hil"]["uses"] == called
        else:
            assert "hil init --workflow OWNER/REPO@REF" in said
            assert re.search(r"^left +.github/workflows/hil.yml", said, re.M)
            assert ".github/workflows/hil.yml" not in explained_in(said)
            assert not (project / ".github").exists()


@pytest.mark.parametrize(
    "wrong", ["hil", "example/hil", "example/hil@", "example/hil@a..b", "a/b@c # d", "a/b@{x}\n"]
)
def test_a_wrong_origin_is_named(tmp_path: Path, wrong: str) -> None:
    """Nothing of it reaches the workflow's text, and nothing is written."""
    project = idf_project(tmp_path / "product")
    with pytest.raises(ConfigError, match="OWNER/REPOSITORY@REF"):
        CliRunner().invoke(command, [str(project), "--workflow", wrong], catch_exceptions=False)
    assert [path.name for path in project.iterdir()] == ["CMakeLists.txt"]


def test_the_firmware_is_found_by_its_cmakelists(tmp_path: Path) -> None:
    """Here, or in the one folder below that is an ESP-IDF project; none and several are errors."""
    with pytest.raises(ConfigError, match="holds no ESP-IDF project"):
        find_firmware(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(library)\n")
    app = idf_project(tmp_path / "app")
    assert find_firmware(tmp_path) == app
    init(tmp_path)
    assert read_project(tmp_path).firmware == app
    idf_project(tmp_path / "other")
    with pytest.raises(ConfigError, match="several ESP-IDF projects: app, other"):
        find_firmware(tmp_path)
    assert find_firmware(app) == app


def test_the_project_is_the_nearest_that_is_marked(tmp_path: Path) -> None:
    """hil.toml upwards, before the tool's checkout; without it git's top folder, or here.

    The checkout is the project of those who work in it, and of nobody else.
    """
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    checkout = tmp_path / "tool"
    assert find_project(inner, None) == inner
    (tmp_path / "a" / ".git").mkdir()
    assert find_project(inner, None) == tmp_path / "a"
    assert find_project(inner, checkout) == tmp_path / "a"
    assert find_project(checkout / "docs", checkout) == checkout
    (tmp_path / "a" / "b" / "hil.toml").write_text("")
    assert find_project(inner, checkout) == tmp_path / "a" / "b"


@pytest.mark.parametrize(
    ("files", "targets", "left"),
    [
        ({"sdkconfig.defaults.esp32s3-devkit": "", "sdkconfig.defaults.ci": ""}, ("esp32s3",), ""),
        ({"sdkconfig.defaults.esp32c3.release": "", "sdkconfig.defaults.esp32c3": ""}, ("esp32c3",), ""),
        ({"sdkconfig.defaults.esp32.wroom": ""}, ("esp32",), ""),
        ({"sdkconfig.defaults.prod": 'CONFIG_IDF_TARGET="esp32c6"\n'}, ("esp32c6",), ""),
        ({"sdkconfig.old": 'CONFIG_IDF_TARGET="esp32c6"\n'}, ("esp32",), ""),
        ({"sdkconfig.ci.p4_wifi": 'CONFIG_IDF_TARGET="esp32p4"\n'}, ("esp32",), ""),
        ({"sdkconfig.defaults.esp32c61": ""}, ("esp32",), "sdkconfig.defaults.esp32c61: esp32c61 is no chip"),
        ({"sdkconfig": 'CONFIG_IDF_TARGET="linux"\n'}, ("esp32",), "sdkconfig: linux is no chip"),
    ],
)
def test_targets_are_chips_whatever_the_variants_are_called(
    files: dict[str, str], targets: tuple[str, ...], left: str, tmp_path: Path
) -> None:
    """A variant's name is no chip: hil.toml names chips alone, and a chip that hil lacks is said."""
    idf_project(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    said = init(tmp_path)
    assert read_project(tmp_path).targets == targets
    assert left in said
    assert ("left " in said) == bool(left)


def test_a_target_of_hil_toml_that_is_no_chip_is_refused(tmp_path: Path) -> None:
    """The file, the word, and the nearest chip are named, before anything is built."""
    (tmp_path / "hil.toml").write_text('schema = 1\n[firmware]\nfolder = "."\ntargets = ["esp32s33"]\n')
    with pytest.raises(ConfigError, match=r"hil\.toml: firmware\.targets .*'esp32s33'.*mean 'esp32s3'"):
        read_project(tmp_path)
